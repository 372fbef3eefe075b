package approvals_test

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/callgate/callgate/gateway/approvals"
	"github.com/callgate/callgate/gateway/journal"
	"github.com/callgate/callgate/registry"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/approval"
)

// counted is a store that counts how often an approval is read.
type counted struct {
	*store.Memory
	reads atomic.Int32
}

func (s *counted) Approval(ctx context.Context, id string) (approval.Approval, error) {
	s.reads.Add(1)
	return s.Memory.Approval(ctx, id)
}

// counting is a kernel that counts how often its rules are asked for, and hires eve at last.
type counting struct {
	asked atomic.Int32
	hired int32 // from which time on eve may approve
}

func (k *counting) Approvals() (approval.Rules, approval.People) {
	hired := k.asked.Add(1) >= k.hired
	return rules(), func(v approval.Vote) approval.Voter {
		if !hired {
			return approval.Voter{}
		}
		return approval.Voter{Principal: v.By, Approves: []string{"refunds"}}
	}
}

func (*counting) Writer() *journal.Writer { return nil }

func (*counting) ToolVersion(string, string) (*registry.Entry, error) { return nil, nil }

// asking is a store with one approval that waits for eve's vote to count.
func asking(t testing.TB, s store.Approvals, id string) approval.Approval {
	t.Helper()
	a, err := approval.Open(approval.Approval{ID: id, Rules: []string{"refunds"}, Call: approval.Call{
		Principal: "p" + id[len(id)-1:], Workspace: "w", Project: "q", Agent: "Analyst", Tool: "pay", Version: "1.0.0", Definition: "d", Arguments: []byte(strconv.Quote(id)),
	}}, rules(), time.Now())
	if err == nil {
		_, _, err = s.Ask(t.Context(), a)
	}
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// A request that waits counts the votes again as the configuration changes, and reads the store
// for that neither each time nor while nothing changes.
func TestRecountsWithoutReading(t *testing.T) {
	s := &counted{Memory: store.NewMemory(time.Now)}
	a := asking(t, s, "call_1")
	if _, err := s.Vote(t.Context(), a.ID, approval.Vote{By: "eve", Yes: true, Digest: a.Digest, Rules: a.Rules}); err != nil {
		t.Fatal(err)
	}
	k := &counting{hired: 3}
	_, state, err := approvals.New(func() approvals.Kernel { return k }, approvals.Deps{Store: s}).Await(t.Context(), a.ID)
	if err != nil || state != approval.Approved || s.reads.Load() != 2 {
		t.Errorf("%s, %v, after %d counts and %d reads of the store; expected one read at first and one at last", state, err, k.asked.Load(), s.reads.Load())
	}
}

// BenchmarkWaiting has 1,000 requests wait. It reports the time of the processor that they take
// each second, how often they read the store, and how long after a vote its request continues.
func BenchmarkWaiting(b *testing.B) {
	const waiting, seconds = 1_000, 5
	for b.Loop() {
		s := &counted{Memory: store.NewMemory(time.Now)}
		desk := approvals.New(func() approvals.Kernel { return &counting{} }, approvals.Deps{Store: s})
		woken := make([]chan time.Time, waiting)
		var asked [waiting]approval.Approval
		for i := range asked {
			asked[i] = asking(b, s, fmt.Sprintf("call_%03d%d", i/10, i%10))
			woken[i] = make(chan time.Time, 1)
			go func() {
				if _, _, err := desk.Await(b.Context(), asked[i].ID); err != nil {
					b.Error(err)
				}
				woken[i] <- time.Now()
			}()
		}
		time.Sleep(time.Second)
		before, reads := processorTime(b), s.reads.Load()
		time.Sleep(seconds * time.Second)
		b.ReportMetric(float64((processorTime(b)-before).Microseconds())/1000/seconds, "cpu-ms/s")
		b.ReportMetric(float64(s.reads.Load()-reads)/seconds, "reads/s")
		var longest time.Duration
		for i, a := range asked {
			start := time.Now()
			if _, err := s.Vote(b.Context(), a.ID, approval.Vote{By: "eve", Yes: true, Digest: a.Digest, Rules: a.Rules}); err != nil {
				b.Fatal(err)
			}
			longest = max(longest, (<-woken[i]).Sub(start))
		}
		b.ReportMetric(float64(longest.Microseconds())/1000, "vote-to-woken-ms")
	}
}

// processorTime is what the process has used of the processor.
func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
