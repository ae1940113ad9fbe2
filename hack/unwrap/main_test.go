package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestUnwrap(t *testing.T) {
	t.Parallel()
	got, err := unwrap([]byte(`---
properties:
  description:
    description: |-
      one line
      and the next

      a paragraph
    pattern: ^a  b$
  items:
    description: a property called
      items
    type: array
    items:
      description: Item is a Go type
      type: object
versions:
- description: |-
    in a
    list
`))
	if err != nil {
		t.Fatal(err)
	}
	want := `---
properties:
  description:
    description: |-
      one line and the next

      a paragraph
    pattern: ^a  b$
  items:
    description: a property called items
    items:
      type: object
    type: array
versions:
- description: in a list
`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	again, err := unwrap(got)
	if err != nil || string(again) != string(got) {
		t.Errorf("a second time: %v\n%s", err, again)
	}
}

func TestUnwrapRefusesWhatIsNotYAML(t *testing.T) {
	t.Parallel()
	if out, err := unwrap([]byte("a: [")); err == nil {
		t.Errorf("got %s", out)
	}
}
