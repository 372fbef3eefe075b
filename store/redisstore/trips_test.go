package redisstore

import (
	"fmt"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/callgate/callgate/history"
	"github.com/callgate/callgate/internal/redisconn"
	"github.com/callgate/callgate/internal/testkit/redistest"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/approval"
)

// Each request to Redis is a wait for whoever calls.
func TestRequestsToRedis(t *testing.T) {
	s := redistest.Start(t)
	c := s.Client()
	defer c.Close()
	o := Options{Options: redisconn.Options{URL: func() string { return "redis://" + s.Address() }, Prefix: "x:"}, Node: "n", Wait: 30 * time.Second}
	r := join(t, o)
	calls := regexp.MustCompile(`cmdstat_eval(?:sha)?:calls=([0-9]+)`)
	requests := func() (n int) {
		for _, found := range calls.FindAllStringSubmatch(c.Info(ctx, "commandstats").Val(), -1) {
			more, _ := strconv.Atoi(found[1])
			n += more
		}
		return n
	}
	id, key := "", ""
	open := func() error {
		prior, err := r.Open(ctx, store.Call{ID: id, Key: key, Digest: "d"})
		if prior != nil {
			return fmt.Errorf("got %+v", prior)
		}
		return err
	}
	life := func() error {
		if err := open(); err != nil {
			return err
		}
		if err := r.Dispatch(ctx, id, store.Task{Tool: "t", Effect: "read"}); err != nil {
			return err
		}
		_, err := r.Finish(ctx, id, store.Ending{State: store.Done, Attempt: "x"})
		return err
	}
	for _, key := range []string{"3", "4"} {
		if err := r.AddGrant(ctx, approval.Grant{ID: "grant_" + key, Key: key, Until: time.Now().Add(time.Hour)}); err != nil {
			t.Fatal(err)
		}
	}
	terms, err := history.NewTerms([]history.Term{{Tool: "t"}}, func(pattern, tool string) bool { return pattern == tool })
	if err == nil {
		_, err = r.KeepTerms(ctx, terms, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	thread := store.KeysOf(store.Scope{Principal: "p"}, "t")
	inThread := func(name string) error {
		of := store.KeysOf(store.Scope{Principal: "p"}, name)
		if _, err := r.Past(ctx, of, false); err != nil {
			return err
		}
		_, err := r.Reserve(ctx, of, func(history.Past) ([]history.Adds, error) {
			adds, err := terms.Adds("t", nil, nil, time.Now())
			return []history.Adds{adds}, err
		})
		return err
	}
	a := approval.Approval{}
	for _, what := range []struct {
		name string
		most int
		do   func() error
	}{
		{"a call with a key", 3, func() error { id, key = "1"+id, "k"+id; return life() }},
		{"the key again", 3, func() error {
			prior, err := r.Open(ctx, store.Call{ID: "again" + id, Key: key, Digest: "d"})
			if err == nil && (prior == nil || prior.ID != id) {
				err = fmt.Errorf("got %+v", prior)
			}
			return err
		}},
		{"a call without a key", 2, func() error { id, key = "2"+id, ""; return life() }},
		{"what a thread has done", 1, func() error { _, err := r.Past(ctx, thread, true); return err }},
		{"the first call of a thread", 1, func() error { return inThread(id + "t") }},
		{"a call of a thread, behind another at this gateway", 1, func() error { return inThread("t") }},
		{"a question", 3, func() (err error) {
			a, err = approval.Open(approval.Approval{
				ID: "a" + id, Rules: []string{"r"}, Rows: []string{"policy.csv:3"}, Config: "c",
				Call: approval.Call{Principal: "p", Agent: "a", Tool: "t", Version: "1", Definition: "d", Arguments: fmt.Appendf(nil, `{"a":%q}`, id)},
			}, approval.Rules{"r": {Name: "r", Approve: 1, Within: time.Hour}}, time.Now())
			if err == nil {
				a, _, err = r.Ask(ctx, a)
			}
			return err
		}},
		{"a vote", 2, func() error {
			_, err := r.Vote(ctx, a.ID, approval.Vote{By: "v", Yes: true, Digest: a.Digest, Rules: a.Rules})
			return err
		}},
		{"consents, without grants", 2, func() error { _, _, err := r.Consents(ctx, "p", a.Digest, nil); return err }},
		{"consents, with two keys without grants", 4, func() error { _, _, err := r.Consents(ctx, "p", a.Digest, []string{"1", "2"}); return err }},
		{"consents, with two keys of grants", 5, func() error {
			_, grants, err := r.Consents(ctx, "p", a.Digest, []string{"3", "4"})
			if err == nil && len(grants) != 2 {
				err = fmt.Errorf("got %+v", grants)
			}
			return err
		}},
	} {
		least := 99
		for range 3 { // a beat may come between
			before := requests()
			if err := what.do(); err != nil {
				t.Fatalf("%s: %v", what.name, err)
			}
			least = min(least, requests()-before)
			if what.name == "a vote" || what.name == "a question" {
				break
			}
		}
		t.Logf("%s: %d", what.name, least)
		if least > what.most {
			t.Errorf("%s takes %d requests, expected at most %d", what.name, least, what.most)
		}
	}
}
