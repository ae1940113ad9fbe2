package apply

import (
	"encoding/json"
	"fmt"
	"strconv"
)

func encode(v any) ([]byte, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encoding object: %w", err)
	}
	return raw, nil
}

func decodeInto(raw []byte, into any) error {
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("decoding object: %w", err)
	}
	return nil
}

// index of a list item, -1 for a field.
func (s step) index() int {
	if !s.list {
		return -1
	}
	i, err := strconv.Atoi(s.token)
	if err != nil {
		return -1
	}
	return i
}
