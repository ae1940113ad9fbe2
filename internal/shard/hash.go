package shard

import (
	"hash/fnv"
	"strconv"
)

// Slots is how many slots a fleet has: enough to share it evenly between some dozen replicas.
const Slots = 256

// Slot is a part of the fleet.
type Slot uint8

// SlotOf is the slot that a runtime is in, for ever.
func SlotOf(runtime string) Slot { return Slot(hash(runtime) % Slots) }

// hash is FNV-1a with the bits mixed: short strings that differ in their last byte only must not end up beside each other.
func hash(s string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(s)) // it never fails
	x := h.Sum64()
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

// shareOut says who should hold each slot: of all members the one with the highest hash of its name and the slot. One more member
// only takes, and one less only leaves what it had. Without members nobody should.
func shareOut(members []string) (out table) {
	var best [Slots]uint64
	for _, m := range members {
		for s := range Slots {
			if h := hash(m + "/" + strconv.Itoa(s)); out[s] == "" || h > best[s] || (h == best[s] && m < out[s]) {
				out[s], best[s] = m, h
			}
		}
	}
	return out
}
