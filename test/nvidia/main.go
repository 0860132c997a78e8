package main

import (
	"flag"
	"fmt"
	"log"
	"os"
)

func main() {
	log.SetFlags(0)
	folder := flag.String("place", "", "the folder that run.sh prepared")
	tranche := flag.String("tranche", "", "the program tranche")
	seed := flag.Uint64("seed", 1, "of the first state; each one after it has the next")
	states := flag.Int("states", 1, "how many")
	flag.Parse()
	place := &Place{*folder, *tranche}
	for i := range *states {
		state := Draw(*seed + uint64(i))
		running, err := place.Begin(state)
		if err != nil {
			fmt.Printf("state %d: %v\n", state.Seed, err)
			continue
		}
		server, err := place.Serve(running.Node.Object())
		if err != nil {
			log.Fatal(err)
		}
		node, err := place.Node(server)
		if err != nil {
			log.Fatal(err)
		}
		diffs := differences(state.told(), node.contents())
		fmt.Printf("%d %s %+v %v refused %v knowledge %s\n", state.Seed, state.Machine.Gpus[0].Board, state.Config, running.Node.Resources, running.Node.Refused, node.Knowledge)
		if len(diffs) > 0 {
			fmt.Printf("   DIFF %v\n   problems %v closed %v\n", diffs, node.Problems, node.Closed)
		}
		server.Stop()
		running.Close()
	}
	os.Exit(0)
}
