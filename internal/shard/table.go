package shard

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
)

// table is the holder of each slot, empty for those that nobody holds.
type table [Slots]string

// unknown is the holder of slots of which nobody knows who has them: the table was deleted while there were replicas.
const unknown = "?"

// errTable says that the table is not one that we wrote.
var errTable = errors.New("the table of slots cannot be read: stop all replicas and delete its Lease")

// encode writes a table as JSON: a set of bits in hexadecimal for each holder.
func (t *table) encode() (string, error) {
	sets := map[string][]byte{}
	for s, holder := range t {
		if holder == "" {
			continue
		}
		if sets[holder] == nil {
			sets[holder] = make([]byte, Slots/8)
		}
		sets[holder][s/8] |= 1 << (s % 8)
	}
	out := make(map[string]string, len(sets))
	for holder, set := range sets {
		out[holder] = hex.EncodeToString(set)
	}
	data, err := json.Marshal(out)
	if err != nil {
		return "", fmt.Errorf("writing the table of slots: %w", err)
	}
	return string(data), nil
}

// decode reads what encode writes. Errors are errTable: nothing may be taken by a table that is not understood.
func decode(text string) (t table, err error) {
	var sets map[string]string
	if err := json.Unmarshal([]byte(text), &sets); err != nil {
		return table{}, fmt.Errorf("%w: %w", errTable, err)
	}
	if sets == nil {
		return table{}, errTable
	}
	for holder, digits := range sets {
		set, err := hex.DecodeString(digits)
		if err != nil || len(set) != Slots/8 || holder == "" {
			return table{}, fmt.Errorf("%w: what %q holds is no set of slots", errTable, holder)
		}
		for s := range Slots {
			if set[s/8]&(1<<(s%8)) == 0 {
				continue
			}
			if t[s] != "" {
				return table{}, fmt.Errorf("%w: slot %d has two holders", errTable, s)
			}
			t[s] = holder
		}
	}
	return t, nil
}

// all is a table in which one has everything.
func all(holder string) (t table) {
	for s := range t {
		t[s] = holder
	}
	return t
}
