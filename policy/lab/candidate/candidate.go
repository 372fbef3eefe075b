// Package candidate judges live calls by a second configuration, and counts where it differs.
//
// # Contract
//
// A Comparer is told of each judgement once it is made and recorded. It copies the call into a
// queue and returns: one worker judges it by the candidate, from the tool's name to the
// boundaries of the project. A call for which there is no room is counted as skipped, so no
// caller waits, and nothing of a candidate, not even a panic, changes an answer. Memory is bounded:
// by QueuedCalls, QueuedBytes and MaxGroups.
package candidate

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/dryrun"
	"github.com/callgate/callgate/internal/safe"
	"github.com/callgate/callgate/policy/lab/replay"
	"github.com/callgate/callgate/refusal"
)

// The bounds of a Comparer.
const (
	QueuedCalls = 1024
	QueuedBytes = 16 << 20 // of arguments, and of the names that callers write
	MaxGroups   = 1000
)

// Counts beside the changes of package replay.
const (
	Same    = "same"
	Skipped = "skipped" // there was no room in the queue
	Failed  = "failed"  // the candidate did not answer
)

// Judge judges a call.
type Judge interface {
	Judge(ctx context.Context, c dryrun.Call) dryrun.Outcome
}

// Group is the calls of one agent to one tool that differ in one way.
type Group struct {
	Change    replay.Change `json:"change"`
	Agent     string        `json:"agent"`
	Workspace string        `json:"workspace"`
	Project   string        `json:"project"`
	Tool      string        `json:"tool"`
	Served    refusal.Code  `json:"served,omitempty"`    // the code of the refusal
	Candidate refusal.Code  `json:"candidate,omitempty"` // likewise
	Rows      string        `json:"rows,omitempty"`      // of the candidate's policy that decided
	Calls     int64         `json:"calls"`
	Last      string        `json:"last"` // the call id of the last
}

// Report counts the comparisons since the candidate, or what is served, last changed.
type Report struct {
	Active     bool             `json:"active"` // there is a candidate
	Fault      string           `json:"fault,omitempty"`
	Served     string           `json:"served_digest,omitempty"`
	Candidate  string           `json:"candidate_digest,omitempty"`
	Since      time.Time        `json:"since,omitzero"`
	Counts     map[string]int64 `json:"counts"`
	Groups     []Group          `json:"groups"`
	MoreGroups int64            `json:"more_groups"` // calls of groups beyond MaxGroups
}

// Comparer compares. It is safe for concurrent use.
type Comparer struct {
	now     func() time.Time
	observe func(result string)
	current atomic.Pointer[comparison]
	queue   chan queued
	bytes   atomic.Int64
}

// comparison is one candidate beside one configuration that is served.
type comparison struct {
	judge  Judge
	mu     sync.Mutex
	report Report // without groups
	groups map[Group]*Group
}

type queued struct {
	of     *comparison
	call   dryrun.Call
	id     string
	served replay.Judgement
}

// New returns a comparer that calls observe, which may be nil, for each result.
func New(now func() time.Time, observe func(result string)) *Comparer {
	if observe == nil {
		observe = func(string) {}
	}
	return &Comparer{now: now, observe: observe, queue: make(chan queued, QueuedCalls)}
}

// Set replaces the candidate; a nil judge is none, for the fault that is given. Counts begin
// anew, unless both digests are those of before.
func (c *Comparer) Set(judge Judge, served, candidate, fault string) {
	if now := c.current.Load(); now != nil && now.report.Served == served && now.report.Candidate == candidate && now.report.Fault == fault {
		return
	}
	if judge == nil && fault == "" {
		c.current.Store(nil)
		return
	}
	c.current.Store(&comparison{
		judge: judge, groups: map[Group]*Group{},
		report: Report{Active: judge != nil, Fault: fault, Served: served, Candidate: candidate, Since: c.now(), Counts: map[string]int64{}},
	})
}

// Judged takes a judgement for comparison, if there is a candidate.
func (c *Comparer) Judged(s gateway.ShadowJudgement) {
	now := c.current.Load()
	if now == nil || now.judge == nil || s.Digest != now.report.Served {
		return
	}
	served, compared := judgementOf(s)
	if !compared {
		return
	}
	size := int64(len(s.Arguments) + len(s.Tool) + len(s.Version))
	if c.bytes.Add(size) > QueuedBytes || len(c.queue) == cap(c.queue) {
		c.bytes.Add(-size)
		c.count(now, Skipped)
		return
	}
	q := queued{of: now, id: s.CallID, served: served, call: dryrun.Call{
		Agent: s.Subject.Agent, Workspace: s.Subject.Workspace, Project: s.Subject.Project, Tool: s.Tool, Version: s.Version, Arguments: bytes.Clone(s.Arguments),
	}}
	select {
	case c.queue <- q:
	default:
		c.bytes.Add(-size)
		c.count(now, Skipped)
	}
}

// judgementOf is the judgement of the rules that a candidate has too. There is none where a call
// was refused for something else.
func judgementOf(s gateway.ShadowJudgement) (replay.Judgement, bool) {
	j := replay.Judgement{Verdict: replay.Allowed}
	if len(s.Asks) > 0 {
		j.Verdict = replay.Asks
	}
	if s.Refusal == nil {
		return j, true
	}
	switch s.Refusal.Stage {
	case refusal.Schema, refusal.Permission, refusal.Workspace, refusal.Project:
		return replay.Judgement{Verdict: replay.Refused, Code: s.Refusal.Code}, s.Refusal.Code != refusal.ToolQuarantined && s.Refusal.Code != refusal.ToolStarting
	case refusal.Approval, refusal.Log, refusal.Execute, refusal.Wrap:
		return j, true
	}
	return j, false
}

// Run compares until ctx ends.
func (c *Comparer) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case q := <-c.queue:
			c.bytes.Add(-int64(len(q.call.Arguments) + len(q.call.Tool) + len(q.call.Version)))
			if c.current.Load() == q.of { // else its counts are gone
				c.compare(ctx, q)
			}
		}
	}
}

func (c *Comparer) compare(ctx context.Context, q queued) {
	j, ok := judged(ctx, q.of.judge, q.call)
	if !ok {
		if ctx.Err() == nil {
			c.count(q.of, Failed)
		}
		return
	}
	change := replay.Between(q.served, j)
	if change == "" {
		c.count(q.of, Same)
		return
	}
	q.of.add(change, q, j)
	c.count(q.of, string(change))
}

// judged judges by a candidate. A panic of one is an answer that was not given.
func judged(ctx context.Context, judge Judge, call dryrun.Call) (j replay.Judgement, ok bool) {
	defer safe.Catch(func(error) { ok = false })
	out := judge.Judge(ctx, call)
	j = replay.Judgement{Verdict: replay.Allowed, Rows: out.Rows}
	switch {
	case out.Refusal != nil && out.Refusal.Code == refusal.Internal, ctx.Err() != nil:
		return j, false
	case out.Refusal != nil:
		j.Verdict, j.Code = replay.Refused, out.Refusal.Code
	case len(out.Asks) > 0:
		j.Verdict = replay.Asks
	}
	return j, true
}

func (c *Comparer) count(of *comparison, result string) {
	of.mu.Lock()
	of.report.Counts[result]++
	of.mu.Unlock()
	c.observe(result)
}

func (of *comparison) add(change replay.Change, q queued, j replay.Judgement) {
	key := Group{
		Change: change, Agent: q.call.Agent, Workspace: q.call.Workspace, Project: q.call.Project, Tool: q.call.Tool,
		Served: q.served.Code, Candidate: j.Code, Rows: strings.Join(j.Rows, " "),
	}
	of.mu.Lock()
	defer of.mu.Unlock()
	g := of.groups[key]
	if g == nil {
		if len(of.groups) == MaxGroups {
			of.report.MoreGroups++
			return
		}
		made := key
		g = &made
		of.groups[key] = g
	}
	g.Calls++
	g.Last = q.id
}

// Report says what was compared so far, the groups with the most calls first. The caller may keep it.
func (c *Comparer) Report() Report {
	now := c.current.Load()
	if now == nil {
		return Report{Counts: map[string]int64{}, Groups: []Group{}}
	}
	now.mu.Lock()
	defer now.mu.Unlock()
	r := now.report
	r.Counts = maps.Clone(r.Counts)
	r.Groups = []Group{}
	for _, g := range now.groups {
		r.Groups = append(r.Groups, *g)
	}
	slices.SortFunc(r.Groups, func(a, b Group) int {
		return cmp.Or(cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.Change, b.Change), cmp.Compare(a.Agent, b.Agent),
			cmp.Compare(a.Workspace, b.Workspace), cmp.Compare(a.Project, b.Project), cmp.Compare(a.Tool, b.Tool), cmp.Compare(a.Rows, b.Rows), cmp.Compare(a.Served, b.Served), cmp.Compare(a.Candidate, b.Candidate))
	})
	return r
}
