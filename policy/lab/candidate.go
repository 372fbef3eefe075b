package lab

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
	"github.com/callgate/callgate/internal/safe"

	"github.com/callgate/callgate/refusal"
)

// The bounds of a Comparer.
const (
	QueuedCalls        = 1024
	QueuedBytes        = 16 << 20 // of arguments, of the names that callers write, and of what threads have done
	MaxCandidateGroups = 1000
)

// Counts beside the changes.
const (
	Same    = "same"
	Skipped = "skipped" // there was no room in the queue, or the candidate needs what is not kept of the past
	Failed  = "failed"  // the candidate did not answer
)

// CandidateJudge judges calls by the candidate. It may panic, hang and change what it is given.
type CandidateJudge interface {
	Judge(ctx context.Context, c Call) Judgement
}

// CandidateGroup is the calls of one agent to one tool that differ in one way.
type CandidateGroup struct {
	Change    Change       `json:"change"`
	Agent     string       `json:"agent"`
	Workspace string       `json:"workspace"`
	Project   string       `json:"project"`
	Tool      string       `json:"tool"`
	Served    refusal.Code `json:"served,omitempty"`    // the code of the refusal
	Candidate refusal.Code `json:"candidate,omitempty"` // likewise
	Rows      string       `json:"rows,omitempty"`      // of the candidate's policy that decided
	Calls     int64        `json:"calls"`
	Last      string       `json:"last"` // the call id of the last
}

// CandidateReport counts the comparisons since the candidate, or what is served, last changed.
type CandidateReport struct {
	Active     bool             `json:"active"` // there is a candidate
	Fault      string           `json:"fault,omitempty"`
	Served     string           `json:"served_digest,omitempty"`
	Candidate  string           `json:"candidate_digest,omitempty"`
	Since      time.Time        `json:"since,omitzero"`
	Counts     map[string]int64 `json:"counts"`
	Groups     []CandidateGroup `json:"groups"`
	MoreGroups int64            `json:"more_groups"` // calls of groups beyond MaxGroups
}

// Comparer judges live calls by a second configuration, the candidate, and counts where it differs.
// It is told of each judgement once that is made and recorded; it copies the call into a queue and
// returns. One worker judges it. A call for which there is no room is counted as skipped, so no
// caller waits, and nothing of a candidate, not even a panic, changes an answer. Its memory is
// bounded by QueuedCalls, QueuedBytes and MaxCandidateGroups. It is safe for concurrent use.
type Comparer struct {
	now     func() time.Time
	observe func(result string)
	current atomic.Pointer[comparison]
	queue   chan queued
	bytes   atomic.Int64
}

// comparison is one candidate beside one configuration that is served.
type comparison struct {
	judge  CandidateJudge
	mu     sync.Mutex
	report CandidateReport // without groups
	groups map[CandidateGroup]*CandidateGroup
}

type queued struct {
	of     *comparison
	call   Call
	id     string
	served Judgement
	size   int64
}

// NewComparer returns a comparer that calls observe, which may be nil, for each result.
func NewComparer(now func() time.Time, observe func(result string)) *Comparer {
	if observe == nil {
		observe = func(string) {}
	}
	return &Comparer{now: now, observe: observe, queue: make(chan queued, QueuedCalls)}
}

// Set replaces the candidate; a nil judge is none, for the fault that is given. Counts begin
// anew, unless both digests are those of before.
func (c *Comparer) Set(judge CandidateJudge, served, candidate, fault string) {
	if now := c.current.Load(); now != nil && now.report.Served == served && now.report.Candidate == candidate &&
		now.report.Fault == fault {
		return
	}
	if judge == nil && fault == "" {
		c.current.Store(nil)
		return
	}
	c.current.Store(&comparison{
		judge: judge, groups: map[CandidateGroup]*CandidateGroup{},
		report: CandidateReport{Active: judge != nil, Fault: fault, Served: served, Candidate: candidate, Since: c.now(),
			Counts: map[string]int64{}},
	})
}

// Judged takes a judgement for comparison, if there is a candidate.
func (c *Comparer) Judged(s gateway.ShadowJudgement) {
	now := c.current.Load()
	if now == nil || now.judge == nil || s.Digest != now.report.Served {
		return
	}
	served, compared := servedJudgement(s)
	if !compared {
		return
	}
	size := int64(len(s.Arguments) + len(s.Tool) + len(s.Version))
	if s.Past != nil {
		size += s.Past.Size()
	}
	if c.bytes.Add(size) > QueuedBytes || len(c.queue) == cap(c.queue) {
		c.bytes.Add(-size)
		c.count(now, Skipped)
		return
	}
	q := queued{of: now, id: s.CallID, served: served, size: size, call: Call{
		Agent: s.Subject.Agent, Workspace: s.Subject.Workspace, Project: s.Subject.Project, Tool: s.Tool, Version: s.Version,
		Arguments: bytes.Clone(s.Arguments), Past: s.Past,
	}}
	select {
	case c.queue <- q:
	default:
		c.bytes.Add(-size)
		c.count(now, Skipped)
	}
}

// servedJudgement is the judgement of the rules that a candidate has too. There is none where a call
// was refused for something else.
func servedJudgement(s gateway.ShadowJudgement) (Judgement, bool) {
	j := Judgement{Verdict: Allowed}
	if len(s.Asks) > 0 {
		j.Verdict = Asks
	}
	if s.Refusal == nil {
		return j, true
	}
	switch s.Refusal.Stage {
	case refusal.Schema, refusal.Permission, refusal.Workspace, refusal.Project:
		return Judgement{Verdict: Refused, Code: s.Refusal.Code},
			!slices.Contains([]refusal.Code{refusal.ToolQuarantined, refusal.ToolStarting, refusal.Stopped, refusal.StoreUnavailable,
				refusal.ThreadRequired, refusal.ThreadClosed, refusal.ThreadsFull, refusal.ThreadsUnavailable}, s.Refusal.Code)
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
			c.bytes.Add(-q.size)
			if c.current.Load() == q.of { // else its counts are gone
				c.compare(ctx, q)
			}
		}
	}
}

func (c *Comparer) compare(ctx context.Context, q queued) {
	j, ok := judgedSafely(ctx, q.of.judge, q.call)
	if !ok {
		if ctx.Err() == nil {
			c.count(q.of, Failed)
		}
		return
	}
	if j.NeedsPast {
		c.count(q.of, Skipped)
		return
	}
	change := Between(q.served, j)
	if change == "" {
		c.count(q.of, Same)
		return
	}
	q.of.add(change, q, j)
	c.count(q.of, string(change))
}

// judgedSafely judges by a candidate. A panic of one is an answer that was not given.
func judgedSafely(ctx context.Context, judge CandidateJudge, call Call) (j Judgement, ok bool) {
	defer safe.Catch(func(error) { ok = false })
	j = judge.Judge(ctx, call)
	return j, j.Code != refusal.Internal && ctx.Err() == nil
}

func (c *Comparer) count(of *comparison, result string) {
	of.mu.Lock()
	of.report.Counts[result]++
	of.mu.Unlock()
	c.observe(result)
}

func (of *comparison) add(change Change, q queued, j Judgement) {
	key := CandidateGroup{
		Change: change, Agent: q.call.Agent, Workspace: q.call.Workspace, Project: q.call.Project, Tool: q.call.Tool,
		Served: q.served.Code, Candidate: j.Code, Rows: strings.Join(j.Rows, " "),
	}
	of.mu.Lock()
	defer of.mu.Unlock()
	g := of.groups[key]
	if g == nil {
		if len(of.groups) == MaxCandidateGroups {
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
func (c *Comparer) Report() CandidateReport {
	now := c.current.Load()
	if now == nil {
		return CandidateReport{Counts: map[string]int64{}, Groups: []CandidateGroup{}}
	}
	now.mu.Lock()
	defer now.mu.Unlock()
	r := now.report
	r.Counts = maps.Clone(r.Counts)
	r.Groups = []CandidateGroup{}
	for _, g := range now.groups {
		r.Groups = append(r.Groups, *g)
	}
	slices.SortFunc(r.Groups, func(a, b CandidateGroup) int {
		return cmp.Or(cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.Change, b.Change), cmp.Compare(a.Agent, b.Agent),
			cmp.Compare(a.Workspace, b.Workspace), cmp.Compare(a.Project, b.Project), cmp.Compare(a.Tool, b.Tool),
			cmp.Compare(a.Rows, b.Rows), cmp.Compare(a.Served, b.Served), cmp.Compare(a.Candidate, b.Candidate))
	})
	return r
}
