// Command nvidia judges what Tranche says of nodes, and promises pods on them, by what NVIDIA's own
// programs do on the same machine. It exits 1 where they differ. See run.sh.
package main

import (
	"flag"
	"fmt"
	"log"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
)

func main() {
	log.SetFlags(0)
	folder := flag.String("place", "", "the folder that run.sh prepared")
	tranche := flag.String("tranche", "", "the program tranche")
	seed := flag.Uint64("seed", 1, "of the first state; each one after it has the next")
	states := flag.Int("states", 1, "how many")
	show := flag.Int("show", 2, "how many differences of a kind to print")
	flag.Parse()
	place := &Place{*folder, *tranche}
	table := NewTable(os.Stdout, *show)
	for i := range *states {
		state := Draw(*seed + uint64(i))
		if err := judgeState(place, state, table); err != nil {
			log.Fatalf("seed %d, %s, %s: %v", state.Seed, state.Machine.describe(),
				state.Config.describe(), err)
		}
	}
	plans := map[string]int{}
	for i := range (*states + plansPer - 1) / plansPer {
		state := DrawPlan(*seed + uint64(i))
		machine := state.Machine.describe()
		outcome, why, err := judgePlan(place, state)
		if err != nil {
			log.Fatalf("plan, seed %d, %s: %v", state.Seed, machine, err)
		}
		if plans[outcome]++; outcome == planWrong && plans[outcome] <= *show {
			fmt.Printf("plan, seed %d, %s: %s\n", state.Seed, machine, why)
		}
	}
	table.Print()
	fmt.Print("plans of layouts:")
	for _, outcome := range []string{planMade, planStarts, planBeside, planNone, planWrong} {
		fmt.Printf(" %d %s", plans[outcome], outcome)
	}
	fmt.Println()
	// A few states need not have all of it.
	if !table.Agrees(*states >= 50) || plans[planWrong] > 0 ||
		*states >= 50 && plans[planMade]+plans[planStarts]+plans[planBeside] == 0 {
		os.Exit(1)
	}
}

// One plan for so many states, since each waits for the kubelet and mig-manager by the clock.
const plansPer = 3

func judgeState(place *Place, state *State, table *Table) error {
	running, err := place.Begin(state)
	if err != nil {
		return err
	}
	defer running.Close()
	if err := place.Probe(state, running); err != nil {
		return err
	}
	server, err := place.Serve([]any{running.Node.Object()})
	if err != nil {
		return err
	}
	defer server.Stop()
	seen, err := place.Node(server)
	if err != nil {
		return err
	}
	wrong := differences(state.told(), seen.contents())
	outcome := state.nodeOutcome(wrong)
	if outcome == nodeSame && state.Probe != noProbe && len(state.placeDifferences(seen)) > 0 {
		outcome = nodeLaidOut
	}
	table.Add(state, outcome, fmt.Sprintf("%v, problems %v", wrong, seen.Problems))
	world := &world{place, state, running, server, table, nil, false}
	return world.play(rand.New(rand.NewPCG(state.Seed, 5)))
}

// world is a state with its pods.
type world struct {
	place   *Place
	state   *State
	running *Running
	server  *Tranche
	table   *Table
	held    []holder
	stale   bool // Tranche was not told what the plugin chose among equal sets
}

type holder struct {
	pod   Pod
	given []*Given
}

// play sends pods, and ends some of them.
func (w *world) play(random *rand.Rand) error {
	pods := drawPods(random, &w.running.Node)
	for i, pod := range pods {
		if w.state.Ill && i == len(pods)/2 {
			if err := w.fallIll(random.IntN(len(w.state.Machine.Gpus))); err != nil {
				return err
			}
		}
		if len(w.held) > 0 && random.IntN(3) == 0 {
			if err := w.end(random.IntN(len(w.held))); err != nil {
				return err
			}
		}
		if err := w.send(pod); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) fallIll(gpu int) error {
	if err := w.place.FallIll(w.state, w.running, gpu); err != nil {
		return err
	}
	if err := w.look(); err != nil {
		return err
	}
	return w.server.Ask("POST", "/embedded/v1/apply", w.running.Node.Object(), nil)
}

func (w *world) end(at int) error {
	one := w.held[at]
	w.held = append(w.held[:at], w.held[at+1:]...)
	w.running.Kubelet.ReleasePod(&one.pod, one.given)
	w.stale = w.stale && len(w.held) > 0
	if err := w.server.Delete(&one.pod); err != nil {
		return err
	}
	return w.look()
}

// look is the probe's, where it tells what pods hold.
func (w *world) look() error {
	if w.state.Probe != probeOfPods {
		return nil
	}
	if err := w.place.Probe(w.state, w.running); err != nil {
		return err
	}
	return w.server.Ask("POST", "/embedded/v1/apply", w.running.Node.Object(), nil)
}

func (w *world) send(pod Pod) error {
	record, refusal, err := w.server.Place(&pod)
	if err != nil {
		return err
	}
	foretold := w.state.Foretold(record)
	given, rejection := w.running.Kubelet.AdmitPod(&pod, foretold)
	switch {
	case record == nil && rejection == nil:
		w.running.Kubelet.ReleasePod(&pod, given)
		w.table.Add(w.state, podRefused, fmt.Sprintf("%v refused: %s", pod.Asks, refusal))
		return w.server.Delete(&pod)
	case record == nil:
		w.table.Add(w.state, podNoRoom, "")
		return w.server.Delete(&pod)
	case rejection != nil:
		w.table.Add(w.state, w.state.rejection(rejection), fmt.Sprintf("%v: %v", pod.Asks, rejection))
		return w.server.Delete(&pod)
	}
	w.held = append(w.held, holder{pod, given})
	outcome, why := w.state.JudgeNames(foretold, given)
	if outcome == podMissed {
		outcome = w.missed()
	}
	w.stale = w.stale || outcome != podAdmitted && w.state.Probe != probeOfPods
	wrong := w.state.JudgePod(&pod, record, given)
	if len(wrong) > 0 && !w.state.hasOtherKeys() {
		outcome, why = podRecord, strings.Join(wrong, "; ")
	}
	w.table.Add(w.state, outcome, fmt.Sprintf("%s: %s; pods: %s", record.Knowledge, why, w.pods()))
	return w.look()
}

// missed tells apart what Tranche cannot know.
func (w *world) missed() Outcome {
	switch {
	case w.stale:
		return podStale
	case w.state.Machine.HidesPaths():
		return podHidden
	}
	return podMissed
}

// pods are what all that run ask for, the last one last.
func (w *world) pods() string {
	var all []string
	for _, one := range w.held {
		all = append(all, fmt.Sprint(one.pod.Asks))
	}
	return strings.Join(all, ", ")
}

// rejection tells apart what no label of the node tells.
func (s *State) rejection(err error) Outcome {
	sharing := &s.Config.Sharing
	// GPU feature discovery says how GPUs in no MIG mode are shared.
	whole := slices.ContainsFunc(s.Machine.Gpus, func(gpu Gpu) bool { return !gpu.MigOn })
	untold := sharing.Method == "timeSlicing" || s.Config.Strategy == "none" && !whole
	if untold && sharing.FailMore &&
		strings.Contains(err.Error(), "maximum request size for shared resources is 1") {
		return podByConfig
	}
	return podRejected
}

// hasOtherKeys: a kind of instances with media engines alone is shared by the plain kind's key, of
// which GPU feature discovery then has no labels.
func (s *State) hasOtherKeys() bool {
	plain, media := map[string]bool{}, map[string]bool{}
	for _, gpu := range s.Machine.Gpus {
		for _, mig := range gpu.Migs {
			if _, _, found := strings.Cut(mig.Profile, "+"); found {
				media[migKey(mig.Profile)] = true
			} else {
				plain[migKey(mig.Profile)] = true
			}
		}
	}
	maps.DeleteFunc(media, func(key string, _ bool) bool {
		_, replicas := s.Config.Sharing.of(key)
		return plain[key] || replicas == 1
	})
	return s.Config.Strategy == "mixed" && len(media) > 0
}

func (s *State) nodeOutcome(wrong []Difference) Outcome {
	switch {
	case len(wrong) == 0:
		return nodeSame
	case s.hasOtherKeys():
		return nodeOtherKey
	case s.Config.Strategy == "single" && len(wrong) == 1 && wrong[0].Field == "memory" &&
		s.told().total < 0 && wrong[0].Found != "[]":
		return nodeCatalogue
	}
	return nodeDifferent
}
