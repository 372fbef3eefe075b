package ring_test

import (
	"testing"

	"github.com/callgate/callgate/internal/ring"
)

// TestRing: the newest keys are kept, also where a key was taken out and came again.
func TestRing(t *testing.T) {
	r := ring.New[string, int](2)
	want := func(step string, all map[string]int) {
		t.Helper()
		for _, key := range []string{"a", "b", "c", "d"} {
			got, kept := r.Get(key)
			if value, wanted := all[key]; kept != wanted || got != value {
				t.Errorf("%s: %s is %d, %v; expected %d, %v", step, key, got, kept, value, wanted)
			}
		}
	}
	r.Put("a", 1)
	r.Put("b", 2)
	r.Put("a", 3)
	want("a value that is put again", map[string]int{"a": 3, "b": 2})
	r.Put("c", 4)
	want("the oldest goes", map[string]int{"b": 2, "c": 4})
	r.Delete("b")
	r.Delete("b")
	want("taken out", map[string]int{"c": 4})
	r.Put("b", 5)
	want("it came again", map[string]int{"b": 5, "c": 4})
	r.Put("d", 6)
	want("c is the oldest", map[string]int{"b": 5, "d": 6})
	r.Delete("d")
	r.Put("d", 7)
	want("whose former place is used by itself", map[string]int{"d": 7})
}
