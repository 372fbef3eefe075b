package redisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/callgate/callgate/internal/redisconn"
	"github.com/callgate/callgate/internal/testkit/lossy"
	"github.com/callgate/callgate/internal/testkit/redistest"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/approval"
)

func TestMain(m *testing.M) { redistest.Main(m) }

var ctx = context.Background()

// join opens a store that is ready.
func join(t *testing.T, o Options) *Store {
	t.Helper()
	r, err := New(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	within(t, "the store is ready", func() bool { ready, _ := r.Ready(); return ready })
	return r
}

func within(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain until %s", what)
		}
	}
}

// compare fails where Redis has rows or counts that its records do not call for, or the reverse.
func compare(t *testing.T, c *redis.Client, base string) (records int) {
	t.Helper()
	keys, err := c.Keys(ctx, base+"*").Result()
	if err != nil {
		t.Fatal(err)
	}
	is, want := map[string]string{}, map[string]string{}
	counts := map[string]store.Usage{}
	for _, full := range keys {
		name := strings.TrimPrefix(full, base)
		record := false
		for kind, prefix := range kinds {
			id, found := strings.CutPrefix(name, prefix)
			if !found {
				continue
			}
			record = true
			records++
			h := c.HGetAll(ctx, full).Val()
			if store.Kind(kind) == store.KeyRecord {
				continue
			}
			value, err := decode(store.Key{Kind: store.Kind(kind), ID: id}, []byte(h["h"]), []byte(h["b"]))
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			for _, e := range store.Entries(value, nil) {
				want[indexKey(e.Index)+" "+e.ID] = strconv.FormatInt(e.At/1000, 10)
			}
			if call, ok := value.(*store.Call); ok {
				for _, of := range []string{"of:" + owner(call.Scope.Principal), "total"} {
					counts[of] = counts[of].Plus(call.Usage())
				}
			}
		}
		switch kind := c.Type(ctx, full).Val(); {
		case record:
		case kind == "zset":
			for _, z := range c.ZRangeWithScores(ctx, full, 0, -1).Val() {
				is[name+" "+z.Member.(string)] = strconv.FormatInt(int64(z.Score)/1000, 10)
			}
		case name == "total" || strings.HasPrefix(name, "of:"):
			h := c.HGetAll(ctx, full).Val()
			var n [4]int64
			for i, field := range []string{"n", "b", "sn", "sb"} {
				n[i], _ = strconv.ParseInt(h[field], 10, 64)
			}
			if got := usageOf(n[:]); got != counts[name] {
				is[name] = fmt.Sprint(got)
			}
		}
	}
	for of, n := range counts {
		if _, wrong := is[of]; wrong {
			want[of] = fmt.Sprint(n)
		}
	}
	for row, at := range want {
		if is[row] != at {
			t.Errorf("%s: Redis has %q, the records say %q", row, is[row], at)
		}
	}
	for row, at := range is {
		if _, known := want[row]; !known {
			t.Errorf("%s: Redis has %q, and no record says so", row, at)
		}
	}
	return records
}

// Whatever happens, rows and counts are those of the records, and what a process remembers of them ends.
func TestRowsAndCountsAreThoseOfTheRecords(t *testing.T) {
	s := redistest.Start(t)
	p := lossy.New(t, s.Address())
	c := s.Client()
	defer c.Close()
	at := func(node, address string) Options {
		return Options{
			Options: redisconn.Options{URL: func() string { return "redis://" + address }, Prefix: "rows:"},
			Node:    node, Bounds: store.Bounds{Calls: 60, Bytes: 40_000, PrincipalPercent: 60}, Wait: 2250 * time.Millisecond,
		}
	}
	all := []*Store{join(t, at("a", p.Address())), join(t, at("b", s.Address()))}
	random := rand.New(rand.NewPCG(1, 2))
	var ids []string
	opener := map[string]*Store{}
	var mu sync.Mutex
	pick := func() string {
		mu.Lock()
		defer mu.Unlock()
		if len(ids) == 0 {
			return "none"
		}
		return ids[max(0, len(ids)-1-random.IntN(12))]
	}
	by := func(id string) *Store { mu.Lock(); defer mu.Unlock(); return cmp.Or(opener[id], all[0]) }
	n := func(most int) int { mu.Lock(); defer mu.Unlock(); return random.IntN(most) }
	step := func(r *Store, i int) {
		switch n(12) {
		case 0, 1, 2, 3:
			id := fmt.Sprintf("call\x00\xff \n%d", i)
			call := store.Call{ID: id, Digest: "d", Scope: store.Scope{Principal: fmt.Sprint("p", n(3))}}
			if n(2) == 0 {
				call.Key = fmt.Sprint("key ", n(20))
			}
			if prior, err := r.Open(ctx, call); err == nil && prior == nil {
				mu.Lock()
				ids = append(ids, id)
				opener[id] = r
				mu.Unlock()
			}
		case 4, 5, 6:
			task := store.Task{Tool: "t", Effect: "read", Arguments: make([]byte, n(900))}
			if n(2) == 0 {
				task.Using = []string{fmt.Sprint("ask", n(10))}
			}
			id := pick()
			_ = by(id).Dispatch(ctx, id, task)
		case 7, 8:
			_, _ = r.Finish(ctx, pick(), store.Ending{State: store.Done, Attempt: "x", Answer: store.Answer{Result: make([]byte, n(900))}})
		case 9:
			_ = r.Update(ctx, pick(), store.Defer{Until: time.Now().Add(time.Hour)})
		case 10:
			id := pick()
			_ = by(id).Settle(ctx, id)
		case 11:
			a, err := approval.Open(approval.Approval{
				ID: fmt.Sprint("ask", n(10)), Rules: []string{"r"}, Rows: []string{"policy.csv:3"}, Config: "c",
				Call: approval.Call{Principal: fmt.Sprint("p", n(3)), Agent: "a", Tool: "t", Version: "1", Definition: "d", Arguments: fmt.Appendf(nil, `{"a":%d}`, n(5))},
			}, approval.Rules{"r": {Name: "r", Approve: 1, Within: time.Hour}}, time.Now())
			if err != nil {
				t.Error(err)
			}
			if a, _, err := r.Ask(ctx, a); err == nil {
				_, _ = r.Vote(ctx, a.ID, approval.Vote{By: "v", Yes: n(4) > 0, Digest: a.Digest, Rules: a.Rules})
			}
			_, _ = r.ClaimNotices(ctx, 3, time.Millisecond)
		}
	}
	for round := range 12 {
		var group sync.WaitGroup
		for worker := range 6 {
			group.Go(func() {
				for i := range 40 {
					if worker == 0 && i%8 == 0 {
						p.Set(func(h *lossy.Faults) { h.CutNextReply = true })
					}
					step(all[n(2)], round*10_000+worker*1000+i)
				}
			})
		}
		group.Wait()
		if round == 7 {
			c.FlushAll(ctx)
		}
		p.Clear()
		for _, r := range all {
			within(t, "all is settled", func() bool {
				_, err := r.Get(ctx, "none", store.OfAnyone())
				return errors.Is(err, store.ErrNotFound) && r.Retractions() == 0
			})
		}
		if records := compare(t, c, "rows:{store}:"); records < 10 {
			t.Errorf("%d records", records)
		}
		if t.Failed() {
			t.Fatalf("in round %d", round)
		}
	}
	for _, id := range ids {
		_ = by(id).Settle(ctx, id)
		for _, r := range all {
			_, _ = r.Finish(ctx, id, store.Ending{State: store.Done, Attempt: "end"})
		}
	}
	compare(t, c, "rows:{store}:")
	for _, r := range all {
		r.mu.Lock()
		for key, h := range r.held {
			if key.Kind != store.LeaseRecord {
				t.Errorf("%s remembers %q: %+v, lost %v", r.process.Node, key.ID, h.Value, h.lost != nil)
			}
		}
		if len(r.begun) > 0 || r.opened != 0 {
			t.Errorf("%s: %d begun, %d opened", r.process.Node, len(r.begun), r.opened)
		}
		r.mu.Unlock()
	}
}

// A user with the commands that the manual names can keep calls, approvals and grants, and put them back.
func TestUserOfTheManual(t *testing.T) {
	page, err := os.ReadFile("../../docs/redis.md")
	if err != nil {
		t.Fatal(err)
	}
	s := redistest.Start(t)
	c := s.Client()
	defer c.Close()
	user := []any{"acl", "setuser", "callgate", "on", ">hunter2", "~x:*"}
	for _, pattern := range []string{`(?m)^    user callgate on .*(-@all .*)$`, "(?m)^  `([+]wait)`$"} {
		found := regexp.MustCompile(pattern).FindSubmatch(page)
		if found == nil {
			t.Fatalf("the page has no %s", pattern)
		}
		for _, right := range strings.Fields(string(found[1])) {
			user = append(user, right)
		}
	}
	if err := c.Do(ctx, user...).Err(); err != nil {
		t.Fatal(err)
	}
	var loss atomic.Bool
	r := join(t, Options{
		Options: redisconn.Options{URL: func() string { return "redis://callgate:hunter2@" + s.Address() }, Prefix: "x:"}, Node: "n", Wait: 30 * time.Second,
		Log: Log{OnRestored: func(Restored) { loss.Store(true) }},
	})
	life := func(id string) {
		t.Helper()
		until := func(err error) {
			t.Helper()
			if err != nil {
				t.Error(err)
			}
		}
		_, err := r.Open(ctx, store.Call{ID: id, Key: "key of " + id, Digest: "d"})
		until(err)
		until(r.Dispatch(ctx, id, store.Task{Tool: "t", Effect: "read"}))
		_, err = r.Finish(ctx, id, store.Ending{State: store.Done, Attempt: "x"})
		until(err)
		until(r.AddGrant(ctx, approval.Grant{ID: "grant_" + id, Key: "k", Until: time.Now().Add(time.Hour)}))
		_, _, err = r.Consents(ctx, "", "d", []string{"k"})
		until(err)
		_, err = r.RevokeGrant(ctx, "grant_"+id)
		until(err)
		_, err = r.Recover(ctx, store.Abandoned, 10)
		until(err)
		_, err = r.Sweep(ctx, 10)
		until(err)
	}
	life("1")
	loss.Store(false)
	c.FlushAll(ctx)
	within(t, "the loss is mended", func() bool {
		_, err := r.Get(ctx, "1", store.OfAnyone())
		return err == nil && loss.Load()
	})
	life("2")
	for _, entry := range c.ACLLog(ctx, 100).Val() {
		if object := entry.Object; object != "hello" && !strings.HasPrefix(object, "client|") {
			t.Errorf("denied: %s", object)
		}
	}
}
