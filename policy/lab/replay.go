package lab

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/refusal"
)

// MaxGroups bounds the groups of changes that are kept; changes of further ones are counted.
const MaxGroups = 10_000

// ReplayGroup is the calls of one agent to one tool that one change is about.
type ReplayGroup struct {
	Change    Change       `json:"change"`
	Agent     string       `json:"agent"`
	Workspace string       `json:"workspace"`
	Project   string       `json:"project"`
	Tool      string       `json:"tool"`
	Before    refusal.Code `json:"before,omitempty"` // the code of a refusal
	After     refusal.Code `json:"after,omitempty"`
	Rows      string       `json:"rows,omitempty"` // of the policy that decide now, as file:line
	Calls     int          `json:"calls"`
	First     string       `json:"first"` // the call id of the first
}

// ReplaySummary counts what was judged.
type ReplaySummary struct {
	Decisions int            `json:"decisions"` // that were judged again, or could not be
	Decided   int            `json:"decided"`   // that were judged again
	Undecided map[string]int `json:"undecided"` // by reason
	Outside   map[string]int `json:"outside"`   // decisions that no rule of the configuration made, by reason
	Texts     int            `json:"texts"`     // plain text, which has no call
	// OnThreads says that conditions ask what was done before: each call is judged on that as it was then.
	OnThreads bool `json:"on_threads,omitempty"`
	Assumed   int  `json:"assumed"` // judged by what the log shows of schemas and boundaries
	// NotKept counts the configurations that made decisions and could not be had, as far as they
	// were looked for.
	NotKept     int            `json:"configs_not_kept"`
	Changes     map[Change]int `json:"changes"`      // calls, by change
	MoreGroups  int            `json:"more_groups"`  // calls of groups beyond MaxGroups
	Gateways    int            `json:"gateways"`     // that made the decisions
	From, Until time.Time      `json:"-"`            // of the first and the last
	Configs     map[string]int `json:"configs_seen"` // decisions, by the digest of the configuration
}

// Replay judges the decisions of an audit log again, one after another: the checks schema,
// permission, workspace and project. The caller and the rate of calls are not judged again; a
// refusal for a limit, or because the log or the engine failed, counts as a call that the
// configuration allowed. Conditions that ask what was done before are answered by what the calls let through had done by
// then, in the log, whatever the configuration would have said to them.
//
// A log that keeps no arguments still decides all that does not depend on them; the rest is
// undecided, with the reason, and never guessed. A Replay keeps one group for each kind of change, at
// most MaxGroups, so that memory does not grow with the log. It is not safe for concurrent use.
type Replay struct {
	baseline, now *side // baseline is nil: against what the log says
	kept          func(digest string) *gateway.Config
	log           Log
	judges        map[string]*side // those that made the decisions, by digest; nil where one is not kept
	groups        map[ReplayGroup]*ReplayGroup
	order         []*ReplayGroup
	gateways      map[string]bool
	rows          map[string]int
	summary       ReplaySummary
}

// Log is what the configuration that an audit log was written under says of it.
type Log struct {
	Since     time.Time // decisions before are not judged: they are only what was done before
	Anonymous bool      // it asked for no credentials, so that all callers are one
	// Idle is after how long the counts of a thread were over, and KeepLabels after how long its labels were; 0: never.
	Idle, KeepLabels time.Duration
}

// NewReplay returns a replay by a configuration, against a baseline; nil is what the log says. Kept
// gives the configuration of a digest, or nil: with it the log's findings on schemas and boundaries
// are only used where these are the same. A configuration that cannot judge is an error.
func NewReplay(now, baseline *gateway.Config, kept func(digest string) *gateway.Config, log Log) (*Replay, error) {
	r := &Replay{
		kept: kept, log: log, judges: map[string]*side{},
		groups: map[ReplayGroup]*ReplayGroup{}, gateways: map[string]bool{}, rows: map[string]int{},
		summary: ReplaySummary{Undecided: map[string]int{}, Outside: map[string]int{}, Changes: map[Change]int{},
			Configs: map[string]int{}},
	}
	var err error
	if r.now, err = newSide(now, log); err != nil {
		return nil, err
	}
	if baseline != nil {
		if r.baseline, err = newSide(baseline, log); err != nil {
			return nil, err
		}
	}
	r.summary.OnThreads = r.now.past != nil || r.baseline != nil && r.baseline.past != nil
	return r, nil
}

// OnThreads reports whether a configuration asks what was done before: then Add needs all records from the beginning of the log.
func (r *Replay) OnThreads() bool { return r.summary.OnThreads }

// Lose says that records before a time are missing.
func (r *Replay) Lose(at time.Time) {
	for _, s := range []*side{r.now, r.baseline} {
		if s != nil && s.past != nil {
			s.past.lose(at)
		}
	}
}

// Add judges the decision of a record; other events are only what was done before. Records come in the order of their logs. The
// error is that of the context, or of a configuration that does not answer.
func (r *Replay) Add(ctx context.Context, record *audit.Record) error {
	if err := r.decision(ctx, record); err != nil {
		return err
	}
	if err := r.now.add(record); err != nil {
		return err
	}
	return r.baseline.add(record)
}

// decision judges the decision of a record.
func (r *Replay) decision(ctx context.Context, record *audit.Record) error {
	switch {
	case record.Event != audit.Decision || record.Time.Before(r.log.Since):
		return nil
	case record.Verdict == audit.Text:
		r.summary.Texts++
		return nil
	}
	r.seen(record)
	was, outside := judged(record)
	if outside != "" {
		r.summary.Outside[outside]++
		return nil
	}
	r.summary.Decisions++
	before, after, undecided, err := r.judge(ctx, record, was)
	if err != nil {
		return err
	}
	if undecided != "" {
		r.summary.Undecided[undecided]++
		return nil
	}
	r.summary.Decided++
	for _, row := range after.Rows {
		r.rows[row]++
	}
	if change := Between(before, after); change != "" {
		r.count(change, record, before, after)
	}
	return nil
}

// seen counts where a decision comes from.
func (r *Replay) seen(record *audit.Record) {
	r.gateways[record.Replica] = true
	if r.summary.From.IsZero() || record.Time.Before(r.summary.From) {
		r.summary.From = record.Time
	}
	if record.Time.After(r.summary.Until) {
		r.summary.Until = record.Time
	}
	if len(r.summary.Configs) < MaxGroups {
		r.summary.Configs[record.ConfigDigest]++
	}
}

// judge gives both judgements, or why one cannot be given.
func (r *Replay) judge(ctx context.Context, record *audit.Record, was recorded) (before, after Judgement, undecided string, err error) {
	hidden := r.now.hides(record)
	if after, undecided, err = r.now.decide(ctx, record, hidden); err != nil || undecided != "" {
		return before, after, undecided, err
	}
	before = was.Judgement
	if r.baseline != nil {
		if before, undecided, err = r.baseline.decide(ctx, record, hidden); err != nil || undecided != "" {
			return before, after, undecided, err
		}
	}
	if hidden == "" {
		return before, after, "", nil
	}
	if after.Verdict != Refused {
		differs, known, err := r.differs(record)
		if err != nil || differs != "" {
			return before, after, differs, err
		}
		if !known {
			r.summary.Assumed++
		}
	}
	if after, undecided = was.with(after, r.now.bounded(record.Tool)); undecided != "" {
		return before, after, undecided, nil
	}
	if r.baseline != nil {
		before, undecided = was.with(before, r.baseline.bounded(record.Tool))
	}
	if before.Verdict == Refused && after.Verdict == Refused {
		after.Code = before.Code // which check refuses first may depend on the arguments
	}
	return before, after, undecided, nil
}

// differs says why the log cannot show how the schema and the boundaries of now judge a
// call; "" where they are as they were, as far as is known. Known says that the configuration
// that made the decision is there.
func (r *Replay) differs(record *audit.Record) (why string, known bool, err error) {
	judge, err := r.judgeOf(record.ConfigDigest)
	if err != nil {
		return "", false, err
	}
	for _, other := range []*side{judge, r.baseline} {
		switch {
		case other == nil:
		case !r.now.sameSchema(other, record.Tool):
			return "the schema of the tool differs", true, nil
		case r.now.bounded(record.Tool) && !r.now.sameBounds(other, record):
			return "the boundaries of the project differ", true, nil
		}
	}
	entry, registered := r.now.config.Tools.Lookup(record.Tool)
	if registered && record.ToolVersion != "" && entry.Version() != record.ToolVersion {
		return "the tool has another version now", judge != nil, nil
	}
	return "", judge != nil, nil
}

// maxJudges bounds the configurations that are kept in memory.
const maxJudges = 64

// judgeOf returns the configuration that made decisions, or nil.
func (r *Replay) judgeOf(digest string) (*side, error) {
	judge, known := r.judges[digest]
	if known || r.kept == nil || len(r.judges) == maxJudges {
		return judge, nil
	}
	if digest == r.now.config.Digest {
		judge = r.now
	} else if c := r.kept(digest); c != nil {
		var err error
		if judge, err = newSide(c, r.log); err != nil {
			return nil, err
		}
	} else {
		r.summary.NotKept++
	}
	r.judges[digest] = judge
	return judge, nil
}

func (r *Replay) count(change Change, record *audit.Record, before, after Judgement) {
	r.summary.Changes[change]++
	key := ReplayGroup{
		Change: change, Agent: record.Agent, Workspace: record.Workspace, Project: record.Project, Tool: record.Tool,
		Before: before.Code, After: after.Code, Rows: strings.Join(after.Rows, " "),
	}
	g := r.groups[key]
	if g == nil {
		if len(r.order) == MaxGroups {
			r.summary.MoreGroups++
			return
		}
		made := key
		g = &made
		g.First = record.CallID
		r.groups[key] = g
		r.order = append(r.order, g)
	}
	g.Calls++
}

// Groups lists the groups: by change, then those with the most calls first.
func (r *Replay) Groups() []ReplayGroup {
	var out []ReplayGroup
	for _, g := range r.order {
		out = append(out, *g)
	}
	slices.SortStableFunc(out, func(a, b ReplayGroup) int {
		return cmp.Or(cmp.Compare(slices.Index(Changes(), a.Change), slices.Index(Changes(), b.Change)), b.Calls-a.Calls,
			cmp.Compare(a.Agent, b.Agent), cmp.Compare(a.Tool, b.Tool))
	})
	return out
}

// Summary counts what was judged so far. The maps are the caller's.
func (r *Replay) Summary() ReplaySummary {
	s := r.summary
	s.Undecided, s.Outside, s.Changes, s.Configs = maps.Clone(s.Undecided), maps.Clone(s.Outside), maps.Clone(s.Changes),
		maps.Clone(s.Configs)
	s.Gateways = len(r.gateways)
	return s
}

// Rows counts how often each row of the policy decided, by its place as file:line.
func (r *Replay) Rows() map[string]int { return maps.Clone(r.rows) }
