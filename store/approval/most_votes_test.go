package approval

import (
	"fmt"
	"testing"
	"time"
)

// A no counts however many people have voted, and what is kept then can be read.
func TestNoAfterTheMostVotes(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	rules := Rules{"r": {Name: "r", Approve: 1, Within: time.Hour}}
	a, err := Open(Approval{ID: "call_A", Call: Call{Principal: "p", Tool: "t", Arguments: []byte(`{}`)}, Rules: []string{"r"}}, rules, now)
	if err != nil {
		t.Fatal(err)
	}
	vote := func(i int, yes bool) error {
		_, err := a.Cast(Vote{By: fmt.Sprint("p", i), Yes: yes, Digest: a.Digest, Rules: a.Rules}, now)
		return err
	}
	for i := range MaxVotes {
		if err := vote(i, true); err != nil {
			t.Fatal(err)
		}
	}
	if err := vote(MaxVotes, true); err != ErrVotes {
		t.Errorf("one yes more: %v", err)
	}
	if err := vote(MaxVotes, false); err != nil {
		t.Fatal(err)
	}
	text, err := Encode(a)
	if err != nil {
		t.Fatal(err)
	}
	if read, err := Decode[Approval](text); err != nil || read.Ended.End != EndDenied {
		t.Errorf("%v, %+v", err, read.Ended)
	}
}
