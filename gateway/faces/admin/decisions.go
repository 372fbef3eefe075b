package admin

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/gateway/trace"
	"github.com/callgate/callgate/internal/duration"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/policy"
	"github.com/callgate/callgate/refusal"
)

// The bounds of one search of the log; a slow disk may take long for the bytes.
const (
	searchBytes = 64 << 20
	searchTime  = 5 * time.Second
)

// clockSlack is by how much the clock of a gateway may have been set back: a record that is older
// than that has none behind it that is younger.
const clockSlack = 5 * time.Minute

// Decision is one decision of the audit log, with the end of its call where the log has one.
type Decision struct {
	audit.Record
	Ended *Ended `json:"ended,omitempty"`
}

// Ended is the end of a call that was executed or handed over.
type Ended struct {
	Time    time.Time     `json:"time"`
	Outcome audit.Outcome `json:"outcome"`
	Stage   refusal.Stage `json:"stage,omitempty"`
	Code    refusal.Code  `json:"code,omitempty"`
	Attempt int           `json:"attempt"`
	Micros  int64         `json:"micros"`
}

// Decisions is a page of decisions, the newest first, without arguments and completions.
type Decisions struct {
	Decisions []Decision `json:"decisions"`
	// Next is the parameter before of the next page; absent: there is none. A page may be
	// empty and have one, since a search reads a bounded part of the log.
	Next uint64 `json:"next,omitempty"`
	// BytesRead is how much of the log was read for this page.
	BytesRead int64 `json:"bytes_read"`
}

var decisionsQuery = []Parameter{
	{"agent", "the agent, exactly"}, {"tool", "the tool, exactly"}, {"code", "the code of the refusal, or of the call's end"},
	{"project", "workspace/project, exactly"}, {"ledger", "the id of a thread: calls that used it"},
	{"verdict", "tool_call, text or refused"},
	{"id", "the beginning of the id of the call, in any case, or a whole trace id"},
	{"asked", "yes: only refused calls about which people are asked first; no: no such calls"},
	{"since", "a duration before now, such as 1h, or a time as of RFC 3339: only decisions from then on"},
	{"limit", "how many decisions, 1 to 500; 50 where it is absent"},
	{"before", "the seq that all of them are before: next of the page before"},
}

// decisions answers GET /v1/decisions.
func (s *Sources) decisions(r *Request) (any, error) {
	limit, before, err := r.page("before")
	if err != nil {
		return nil, err
	}
	verdict, err := r.Choice("verdict", string(audit.ToolCall), string(audit.Text), string(audit.Refused))
	if err != nil {
		return nil, err
	}
	asked, err := r.Choice("asked", "yes", "no")
	if err != nil {
		return nil, err
	}
	since, err := r.since(time.Now())
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), cmp.Or(s.SearchTime, searchTime))
	defer cancel()
	search := audit.Search{Before: before, Count: limit, MaxBytes: searchBytes, Equal: map[string]string{}}
	for _, name := range []string{"agent", "tool", "ledger"} {
		if value := r.Query(name); value != "" {
			search.Equal[name] = value
		}
	}
	if place := r.Query("project"); place != "" {
		workspace, project, ok := strings.Cut(place, "/")
		if !ok {
			return nil, bad("The parameter project must be workspace/project.")
		}
		search.Equal["workspace"], search.Equal["project"] = workspace, project
	}
	if !since.IsZero() {
		search.Since = since.Add(-clockSlack)
	}
	// A decision that is no call has no end, so that no other record has to be read for it.
	if verdict == string(audit.Refused) || verdict == string(audit.Text) {
		search.Equal["verdict"] = verdict
	}
	if asked == "yes" {
		search.Equal["code"] = string(refusal.ApprovalRequired)
	}
	code := r.Query("code")
	id := strings.ToLower(r.Query("id"))
	ends := map[string]*Ended{} // of the calls whose decision is further back
	var decisions []Decision
	search.Keep = func(record *audit.Record) bool {
		if record.Time.Before(since) {
			return false
		}
		if !strings.HasPrefix(strings.ToLower(record.CallID), id) && !strings.EqualFold(record.TraceID, id) {
			return false
		}
		if record.Event == audit.Ending {
			ends[record.CallID] = endOf(record)
		}
		if asks := record.Code == refusal.ApprovalRequired; asked != "" && asks != (asked == "yes") {
			return false
		}
		if record.Event != audit.Decision || verdict != "" && string(record.Verdict) != verdict {
			return false
		}
		d := Decision{Record: *record, Ended: ends[record.CallID]}
		delete(ends, record.CallID)
		if code != "" && string(record.Code) != code && (d.Ended == nil || string(d.Ended.Code) != code) {
			return false
		}
		d.Arguments, d.Completion = nil, ""
		decisions = append(decisions, d)
		record.Arguments, record.Completion = nil, ""
		return true
	}
	found, err := s.Log.Newest(ctx, search)
	if err != nil {
		return nil, err
	}
	if decisions == nil {
		decisions = []Decision{}
	}
	return Decisions{Decisions: decisions, Next: found.Next, BytesRead: found.Read}, nil
}

// since returns the time of the parameter since; the zero time where it is absent.
func (r *Request) since(now time.Time) (time.Time, error) {
	text := r.Query("since")
	if text == "" {
		return time.Time{}, nil
	}
	if d, ok := duration.Read(text); ok && d > 0 {
		return now.Add(-d), nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return at, bad("The parameter since is not a duration, such as 1h, or a time, such as 2026-11-22T09:00:00Z.")
	}
	return at, nil
}

func endOf(r *audit.Record) *Ended {
	return &Ended{Time: r.Time, Outcome: r.Outcome, Stage: r.Stage, Code: r.Code, Attempt: r.Attempt, Micros: r.Micros}
}

// Case is everything that is known of one call.
type Case struct {
	CallID string `json:"call_id"`
	// Records are those of the call in the audit log, the oldest first. Content is there as
	// far as audit.record keeps it.
	Records []audit.Record `json:"records"`
	// Refusal is the message that the model or the caller read. It is kept in memory, for the last 1,024
	// judgements of this gateway; the code is in the records in any case.
	Refusal *refusal.Error `json:"refusal,omitempty"`
	// Stages are those that were run, with their times, as long as the refusal is kept.
	Stages []trace.StageReport `json:"stages,omitempty"`
	// Fault is the offset in the completion at which it was refused, where the completion is
	// kept as it was judged.
	Fault *int `json:"fault,omitempty"`
	// Explained is the decision of the policy in force on the call.
	Explained *Explained `json:"explained,omitempty"`
	// TestCase is the decision as a test of the policy, in YAML; absent where no policy decided.
	TestCase string `json:"test_case,omitempty"`
	// Next is where to go on, as before, if the log was not read to its beginning.
	Next uint64 `json:"next,omitempty"`
}

// decision answers GET /v1/decisions/{call_id}.
func (s *Sources) decision(r *Request) (any, error) {
	id := r.PathValue("call_id")
	before, err := r.seq("before")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), cmp.Or(s.SearchTime, searchTime))
	defer cancel()
	found, err := s.Log.Newest(ctx, audit.Search{
		Before: before, Count: maxLimit, MaxBytes: searchBytes, Equal: map[string]string{"call_id": id},
		Keep: func(record *audit.Record) bool {
			if record.Event == audit.Decision {
				cancel() // nothing of the call is before its decision
			}
			return true
		},
	})
	if err != nil {
		return nil, err
	}
	c := Case{CallID: id, Records: found.Records, Next: found.Next}
	slices.Reverse(c.Records)
	if len(c.Records) > 0 && c.Records[0].Event == audit.Decision {
		c.Next = 0
	}
	if j, kept := s.Recent.find(id); kept {
		c.Refusal, c.Stages = j.Refusal, j.Stages()
	}
	if len(c.Records) == 0 && c.Refusal == nil {
		if c.Next == 0 {
			return nil, refusal.New(refusal.NotFound, "The audit log of this gateway has no such call. If several gateways share their calls, ask the one that the call was sent to: each has a log of its own.")
		}
		return c, nil
	}
	if len(c.Records) > 0 {
		c.explain(r.Context(), s)
		if c.TestCase, err = testCase(&c.Records[0], c.Explained); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// explain adds what follows from the decision of the call.
func (c *Case) explain(ctx context.Context, s *Sources) {
	d := &c.Records[0]
	if c.Refusal != nil && len(c.Refusal.Violations) > 0 && d.Completion != "" {
		sum := sha256.Sum256([]byte(d.Completion))
		if at := c.Refusal.Violations[0].Offset; at >= 0 && at <= len(d.Completion) && hex.EncodeToString(sum[:]) == d.InputSHA256 {
			c.Fault = &at
		}
	}
	if d.Tool == "" || d.Agent == "" {
		return
	}
	request := policy.Request{Agent: d.Agent, Workspace: d.Workspace, Project: d.Project, Tool: d.Tool}
	if d.Arguments != nil {
		request.Arguments = parser.DecodeObject(d.Arguments)
	}
	if e, err := s.explained(ctx, request, d.Arguments != nil); err == nil {
		e.SameConfiguration = d.ConfigDigest == s.Kernel.Digest()
		c.Explained = e
	}
}
