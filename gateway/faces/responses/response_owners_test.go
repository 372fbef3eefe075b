package responses

import "testing"

// TestLedger: a response is found by the caller that began it, at its upstream, and by nobody else
// (RS-72).
func TestLedger(t *testing.T) {
	l := newLedger()
	l.Put(owner{"a", "u", "resp_1"}, "resp_2")
	if last, known := l.Get(owner{"a", "u", "resp_1"}); !known || last != "resp_2" {
		t.Errorf("found %q, %v", last, known)
	}
	for _, other := range []owner{{"b", "u", "resp_1"}, {"", "u", "resp_1"}, {"a", "v", "resp_1"}, {"a", "u", "resp_2"}} {
		if _, known := l.Get(other); known {
			t.Errorf("%v is found", other)
		}
	}
}
