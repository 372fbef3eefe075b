package redisstore

import (
	"testing"
	"time"

	"github.com/callgate/callgate/history"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/approval"
)

// FuzzDecode decodes what anybody may have put into Redis: it is refused, or has an id and a step.
func FuzzDecode(f *testing.F) {
	a, err := approval.Open(approval.Approval{
		ID: "x", Rules: []string{"r"}, Rows: []string{"policy.csv:3"}, Config: "c",
		Call: approval.Call{Principal: "p", Agent: "a", Tool: "t", Version: "1", Definition: "d", Arguments: []byte(`{}`)},
	}, approval.Rules{"r": {Name: "r", Approve: 1, Within: time.Hour}}, time.UnixMilli(1))
	if err != nil {
		f.Fatal(err)
	}
	for kind, value := range []store.Value{
		&store.Call{ID: "x", Step: store.Ended, State: store.Done}, &store.Started{Call: "x"}, &store.Asked{Approval: a},
		&store.Question{Approvals: []string{"x"}}, &approval.Grant{ID: "x", Until: time.UnixMilli(1)}, &store.Lease{Node: "n", Process: "n/1"},
		&store.Stops{List: []store.Stop{{ID: "x", Agent: "a", Since: time.UnixMilli(1)}}},
		&store.Thread{ID: "x", Principal: "p", State: history.Begin(time.UnixMilli(1))}, (*history.Keeping)(nil).With("n", nil, time.UnixMilli(1)),
	} {
		head, err := encode(value)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(uint8(kind), head, body(value))
		if _, err := decode(store.Key{Kind: store.Kind(kind), ID: "x"}, head, body(value)); err != nil {
			f.Errorf("kind %d: %v", kind, err)
		}
	}
	f.Fuzz(func(t *testing.T, kind uint8, head, body []byte) {
		value, err := decode(store.Key{Kind: store.Kind(kind % uint8(len(kinds))), ID: "x"}, head, body)
		if (err == nil) != (value != nil) {
			t.Fatalf("%v, %v", value, err)
		}
		if err == nil {
			store.Entries(value, nil)
			if _, err := encode(value); err != nil {
				t.Fatalf("%+v: %v", value, err)
			}
		}
	})
}
