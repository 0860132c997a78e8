#include "scheduler/scoring/room.h"

#include <algorithm>

namespace tranche {

int64_t FreeMilli(const Card& card, const CardLoad& load) {
  if (!card.healthy || card.cordoned || load.exclusive > 0) return 0;
  if (card.MostUsers() > 0 && load.slots >= card.MostUsers()) return 0;
  int64_t free = (card.capacity - load.milli).count();
  if (card.memory.count() > 0) {
    free = std::min(free, (card.memory - load.memory).count() * 1000 / card.memory.count());
  }
  // A pod that wants a card for itself cannot have one with a user, however little that one takes.
  return std::clamp<int64_t>(free, 0, load.slots > 0 ? 999 : 1000);
}

Room RoomOf(const NodeKinds& kinds, KindId id, const Inventory& inventory, const Load& load,
            MilliCpu cpu_free) {
  Room room;
  room.words[0] = id.number();
  room.cpu = std::max<int64_t>(cpu_free.count(), 0);
  const int64_t step = CpuStep(kinds[id].cpu);
  if (step > 0) room.words[1] = static_cast<uint16_t>(std::min(room.cpu / step, kRoomCpuSteps));
  uint16_t* const begin = room.words.data() + Room::kHead;
  uint16_t* next = begin;
  for (std::size_t i = 0; i < inventory.cards.size() && i < kMaxCards; ++i) {
    if (inventory.cards[i].mode == CardMode::kMig) continue;
    const int64_t free = FreeMilli(inventory.cards[i], load.cards[i]);
    room.milli += free;
    if (free == 1000) ++room.idle;
    *next++ = static_cast<uint16_t>(free);
  }
  std::sort(begin, next);
  room.cards = static_cast<uint8_t>(next - begin);
  if (inventory.planned()) return room;
  for (std::size_t p = 0; p < inventory.pools.size() && next != room.words.end(); ++p) {
    const MigPool& pool = inventory.pools[p];
    int64_t replicas = 0;
    for (const int64_t users : load.slots[p]) {
      replicas += std::clamp<int64_t>(pool.replicas - users, 0, UINT16_MAX);
    }
    replicas = std::min<int64_t>(replicas, UINT16_MAX);
    room.milli += replicas * pool.milli.count();
    *next++ = static_cast<uint16_t>(replicas);
    ++room.pools;
  }
  return room;
}

}  // namespace tranche
