package controllers

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kyma-project/mothership/api/v1beta2"
)

// A cache is as new as the API when it has nothing older, misses nothing, and has nothing that was deleted.
func TestNewer(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		cached map[string]string // versions by name
		newer  bool
	}{
		"Same":      {map[string]string{"a": "10", "b": "20"}, false},
		"Newer":     {map[string]string{"a": "31", "b": "20"}, false},
		"MadeSince": {map[string]string{"a": "10", "b": "20", "c": "31"}, false},
		"Others":    {map[string]string{"a": "10", "b": "20", "other": "1"}, false},
		"Older":     {map[string]string{"a": "9", "b": "20"}, true},
		"Missing":   {map[string]string{"a": "10"}, true},
		"Deleted":   {map[string]string{"a": "10", "b": "20", "c": "29"}, true},
		"Empty":     {nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := &snapshot{version: "30", objects: map[types.NamespacedName]string{{Name: "a"}: "10", {Name: "b"}: "20", {Name: "other"}: "25"}}
			now.of = func(n types.NamespacedName) bool { return n.Name != "other" }
			var list v1beta2.KymaList
			for object, version := range test.cached {
				list.Items = append(list.Items, v1beta2.Kyma{ObjectMeta: metav1.ObjectMeta{Name: object, ResourceVersion: version}})
			}
			newer, err := now.newer(&list)
			if err != nil || newer != test.newer {
				t.Errorf("newer: %v, %v", newer, err)
			}
		})
	}
}
