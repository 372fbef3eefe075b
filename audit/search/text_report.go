package search

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/wrapper"
)

// timeLayout shows a time to people: in UTC, in an order that sorts.
const timeLayout = "2006-01-02T15:04:05.000Z"

// maxCell bounds what is shown of a text from outside where others follow on its line.
const maxCell = 48

// printable is a text from outside as people see it: without anything that a terminal would obey.
func printable(text string) string {
	if !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) {
		return text
	}
	quoted, err := wrapper.Marshal(text)
	if err != nil {
		return audit.Escaped(text)
	}
	return strings.NewReplacer(`\\`, `\\`, `\"`, `"`).Replace(string(quoted[1 : len(quoted)-1]))
}

// cell is shown, cut to fit.
func cell(text string) string {
	text = printable(text)
	if r := []rune(text); len(r) > maxCell {
		text = string(r[:maxCell-1]) + "…"
	}
	if text == "" {
		text = "-"
	}
	return text
}

// WriteHead writes the head of the columns of WriteLine.
func WriteHead(w io.Writer) {
	writeColumns(w, "TIME", "WHAT", "CODE", "AGENT", "PRINCIPAL", "PROJECT", "TOOL", "CALL")
}

// WriteLine writes a record for people, on one line, with its arguments where the log has them. Errors of writing are left to the writer.
func WriteLine(w io.Writer, r *audit.Record) {
	place := "-"
	if r.Workspace != "" || r.Project != "" {
		place = cell(r.Workspace + "/" + r.Project)
	}
	call := cell(r.CallID)
	if len(r.Arguments) > 0 {
		call += "  " + cell(string(r.Arguments))
	}
	writeColumns(w, r.Time.UTC().Format(timeLayout), what(r), cell(string(r.Code)), cell(r.Agent), cell(r.Principal), place, cell(r.Tool),
		call)
}

func writeColumns(w io.Writer, at, what, code, agent, principal, place, tool, call string) {
	fmt.Fprintf(w, "%-24s  %-20s  %-20s  %-14s  %-14s  %-16s  %-22s  %s\n", at, what, code, agent, principal, place, tool, call)
}

// Summary counts decisions by agent, tool and what was decided.
type Summary map[summarized]int

type summarized struct{ agent, tool, what string }

// Add counts a record, if it is a decision.
func (s Summary) Add(r *audit.Record) {
	if r.Event == audit.Decision {
		s[summarized{r.Agent, r.Tool, cmp.Or(string(r.Code), string(r.Verdict))}]++
	}
}

// Write writes the summary for people, the most frequent first. Errors of writing are left to the writer.
func (s Summary) Write(w io.Writer) {
	lines := slices.SortedFunc(maps.Keys(s), func(a, b summarized) int {
		return cmp.Or(cmp.Compare(s[b], s[a]), cmp.Compare(a.agent, b.agent), cmp.Compare(a.tool, b.tool), cmp.Compare(a.what, b.what))
	})
	fmt.Fprintf(w, "%7s  %-20s  %-28s  %s\n", "COUNT", "AGENT", "TOOL", "CODE")
	for _, l := range lines {
		fmt.Fprintf(w, "%7d  %-20s  %-28s  %s\n", s[l], cell(l.agent), cell(l.tool), cell(l.what))
	}
}

// what names the kind of a record in a word or two.
func what(r *audit.Record) string {
	switch r.Event {
	case audit.Decision:
		return cell(string(r.Verdict))
	case audit.Ending:
		return "outcome: " + cell(string(r.Outcome))
	}
	return cell(string(r.Event))
}

// Judged is today's judgement of a call by a configuration.
type Judged struct {
	Verdict audit.Verdict
	Refusal *refusal.Error // nil where it is not refused
}

// Configuration answers what a configuration says of a recorded call. It executes nothing.
type Configuration struct {
	// Digest is the configuration's.
	Digest string
	// Judge judges the call of a decision again. It is not called where the record does not have the
	// content for it. An error says why it cannot be judged.
	Judge func(r *audit.Record) (Judged, error)
	// Explain says line by line how the policy decides on the call.
	Explain func(r *audit.Record) []string
}

// NotDispatched reports whether an outcome is that of a call which was approved and then refused
// before it was dispatched, or whose gateway died before that: then no attempt is counted.
func NotDispatched(r *audit.Record) bool {
	return r.Outcome == audit.Unknown && r.Attempt == 0 || r.Verdict == audit.Refused ||
		r.Outcome == audit.Failed && slices.Contains([]refusal.Code{
			refusal.StoreUnavailable, refusal.CallInProgress, refusal.IdempotencyConflict, refusal.Overloaded, refusal.Canceled,
			refusal.ApprovalRequired, refusal.ApprovalDenied, refusal.ApprovalExpired, refusal.Stopped,
		}, r.Code)
}

// Users returns, of the records of a call, the other calls that were to use its approval, and
// the query for how these ended.
func Users(id string, found []Found) (endings Query, some bool) {
	endings = Query{Event: audit.Ending, AnyOf: map[string]bool{}}
	for _, f := range found {
		if f.CallID == id {
			continue
		}
		endings.AnyOf[f.CallID] = true
		if at := f.Time.Add(-outOfOrder); endings.Since.IsZero() || at.Before(endings.Since) {
			endings.Since = at
		}
	}
	return endings, len(endings.AnyOf) > 0
}

// WriteStory explains to people what became of a call: found are the records that a Query for its
// id selects, oldest first, endings those that the query of Users selects, and config may be
// nil. Errors of writing are left to the writer.
func WriteStory(w io.Writer, id string, found, endings []Found, config *Configuration) {
	s := story{Writer: w}
	approvals := func(f Found) bool { return f.Event == audit.Approval }
	fmt.Fprintf(w, "call %s\n", printable(id))
	for i := range found {
		r := &found[i].Record
		switch {
		case r.CallID != id:
			s.user(r, endings)
		case r.Event == audit.Decision:
			s.decision(r, config)
		case r.Event == audit.Ending:
			s.ending(r)
		case r.Event == audit.Approval:
			s.approval(r)
		case r.Event == audit.Stop:
			s.stop(r)
		case r.Event == audit.Thread:
			s.title(r, "thread "+cell(string(r.Code))+" by "+cell(r.Principal))
			s.line("of", "%s", cell(r.OfPrincipal))
		default:
			s.title(r, "event "+cell(string(r.Event))+", which this version does not know")
		}
	}
	own := slices.IndexFunc(found, func(f Found) bool { return f.CallID == id && f.Event == audit.Decision && f.Verdict == audit.ToolCall })
	ended := slices.ContainsFunc(found, func(f Found) bool { return f.CallID == id && f.Event == audit.Ending })
	switch {
	case own >= 0 && !ended && found[own].Mode == audit.Call:
		fmt.Fprint(w, "\nno outcome yet: it is being executed, or its process ended; the next start records what became of it\n")
	case own >= 0 && !ended:
		fmt.Fprint(w, "\nno outcome: it was handed over to the application, which executes it\n")
	case own < 0 && slices.ContainsFunc(found, approvals):
		fmt.Fprint(w, "\nnothing was executed under this id\n")
	}
}

type story struct{ io.Writer }

func (s story) title(r *audit.Record, text string) {
	fmt.Fprintf(s, "\n%s  %s  (seq %d", r.Time.UTC().Format(timeLayout), text, r.Seq)
	if r.Replica != "" {
		fmt.Fprintf(s, " of %s", cell(r.Replica))
	}
	fmt.Fprint(s, ")\n")
}

func (s story) line(name, format string, args ...any) {
	fmt.Fprintf(s, "  %-10s %s\n", name, fmt.Sprintf(format, args...))
}

// user says that another call was to use the approval, and whether it did: of several that were
// judged at the same time one is run, and the others end without that.
func (s story) user(r *audit.Record, endings []Found) {
	i := slices.IndexFunc(endings, func(f Found) bool { return f.CallID == r.CallID })
	switch {
	case i < 0:
		s.title(r, "another call uses its approval; it has not ended")
	case NotDispatched(&endings[i].Record):
		s.title(r, "another call was to use its approval, and was not run: "+cell(string(endings[i].Code)))
	case endings[i].Outcome == audit.Result:
		s.title(r, "the approved call ran and succeeded")
	default:
		s.title(r, "the approved call ran, and ended: "+cell(string(endings[i].Outcome)))
	}
	s.line("call", "%s", printable(r.CallID))
}

// subject says who called what.
func (s story) subject(r *audit.Record) {
	s.line("who", "agent %s, in %s, for the principal %s", cell(r.Agent), cell(r.Workspace+"/"+r.Project), cell(r.Principal))
	if r.Thread != "" || r.RequestID != "" || r.TraceID != "" {
		s.line("request", "id %s, thread %s, trace %s", cell(r.RequestID), cell(r.Thread), cell(r.TraceID))
	}
	if r.Tool != "" {
		s.line("tool", "%s", strings.TrimSpace(printable(r.Tool+" "+r.ToolVersion)))
	}
	if len(r.Arguments) > 0 {
		s.line("arguments", "%s", printable(string(r.Arguments)))
	}
	if r.Completion != "" {
		s.line("completion", "%s", printable(r.Completion))
	}
}

func (s story) decision(r *audit.Record, config *Configuration) {
	switch r.Verdict {
	case audit.Refused:
		s.title(r, fmt.Sprintf("refused at the stage %s: %s", cell(string(r.Stage)), cell(string(r.Code))))
	case audit.Text:
		s.title(r, "judged as text: nothing was to be executed")
	default:
		s.title(r, "accepted")
	}
	s.subject(r)
	s.line("stages", "%s", stages(r))
	s.line("took", "%d µs, under the configuration %s", r.Micros, cell(r.ConfigDigest))
	for _, row := range r.Rows {
		s.line("row", "%s", printable(row))
	}
	s.hooks(r)
	s.past(r)
	for _, used := range r.Approvals {
		s.line("approved", "by %s, for %s", printable(used), printable(strings.Join(r.Rules, ", ")))
	}
	if r.Verdict != audit.Refused {
		return
	}
	if r.Limit != "" {
		s.line("limit", "%s", printable(r.Limit))
	}
	if r.Code == refusal.PermissionDenied && config != nil {
		for i, line := range config.Explain(r) {
			name := ""
			if i == 0 {
				name = "policy"
			}
			s.line(name, "%s", printable(line))
		}
	}
	s.message(r, config)
	s.advice(r.Code)
}

// howToRecord is the setting with which the log has what explains a refusal.
const howToRecord = "with audit.record: arguments in the configuration it has them for the calls to come"

// message says what the model read. The log does not keep it, since it may quote what must not be
// kept; it follows from the call and the configuration.
func (s story) message(r *audit.Record, config *Configuration) {
	if r.Completion == "" && len(r.Arguments) == 0 {
		why := "the log has neither the message nor the arguments; " + howToRecord
		if r.Code == refusal.UnknownTool {
			why = "arguments are not kept for a tool without a schema, which says what in them is secret"
		}
		s.line("message", "not known: %s", why)
		return
	}
	if config == nil {
		s.line("message", "not in the log; with --config the call is judged again")
		return
	}
	judged, err := config.Judge(r)
	if err != nil {
		s.line("message", "not in the log, and the call cannot be judged again: %s", printable(err.Error()))
		return
	}
	under := "the same configuration"
	if config.Digest != r.ConfigDigest {
		under = "today's configuration, which has changed since"
	}
	if judged.Refusal == nil {
		s.line("today", "judged again under %s it is no longer refused: %s", under, judged.Verdict)
		return
	}
	if judged.Refusal.Code != r.Code {
		s.line("today", "judged again under %s it is refused as %s", under, judged.Refusal.Code)
	}
	s.line("message", "%s (judged again under %s)", printable(judged.Refusal.Message), under)
	for _, v := range judged.Refusal.Violations {
		where := fmt.Sprintf("%s at %s", v.Code, cmp.Or(printable(v.Path), "no member"))
		if v.Offset >= 0 {
			where += fmt.Sprintf(", byte %d", v.Offset)
		}
		if len(judged.Refusal.Violations) > 1 {
			where += ": " + printable(v.Message)
		}
		s.line("", "%s", where)
	}
}

func (s story) advice(code refusal.Code) {
	if means := code.Means(); means != "" {
		s.line("means", "%s", means)
		s.line("next", "%s", code.Next())
	}
}

func (s story) ending(r *audit.Record) {
	text := "ended: " + cell(string(r.Outcome))
	if r.Code != "" {
		text += fmt.Sprintf(", %s at the stage %s", cell(string(r.Code)), cell(string(r.Stage)))
	}
	s.title(r, text)
	s.line("took", "%d µs, attempts: %d", r.Micros, r.Attempt)
	s.hooks(r)
	s.past(r)
	if r.Code != "" {
		s.advice(r.Code)
	}
}

// hooks names the hooks that did something.
func (s story) hooks(r *audit.Record) {
	if len(r.Hooks) > 0 {
		s.line("hooks", "redacted or denied by %s", printable(strings.Join(r.Hooks, ", ")))
	}
}

// past says what conditions have read of the past of the thread, and what the call has added to it.
func (s story) past(r *audit.Record) {
	for _, of := range []struct {
		name  string
		texts []string
	}{{"saw", r.Saw}, {"adds", r.Adds}, {"undone", r.Undo}} {
		for i, text := range of.texts {
			name := ""
			if i == 0 {
				name = of.name
			}
			s.line(name, "%s", printable(text))
		}
	}
}

func (s story) approval(r *audit.Record) {
	by := cell(r.Principal)
	text := map[refusal.Code]string{
		audit.Requested: "approval requested by " + by, audit.Yes: by + " said yes", audit.No: by + " said no",
		audit.Lapsed:    "nobody decided in time",
		audit.Withdrawn: "withdrawn by " + by, audit.Revoked: "revoked by " + by, audit.Granted: "a grant was made, by the vote of " + by,
	}[r.Code]
	if text == "" {
		text = "approval: " + cell(string(r.Code))
	}
	s.title(r, text)
	if len(r.Rules) > 0 {
		s.line("rules", "%s", printable(strings.Join(r.Rules, ", ")))
	}
	for _, row := range r.Rows {
		s.line("row", "%s", printable(row))
	}
	if len(r.Approvals) > 1 {
		s.line("grant", "%s", printable(strings.Join(r.Approvals[1:], ", ")))
	}
	if !r.Until.IsZero() {
		s.line("until", "%s", r.Until.UTC().Format(timeLayout))
	}
	if r.Reason != "" {
		s.line("reason", "%s", printable(r.Reason))
	}
}

// stop says what an operator has stopped, or resumed.
func (s story) stop(r *audit.Record) {
	s.title(r, cell(string(r.Code))+" by "+cell(r.Principal))
	covered := store.Stop{Principal: r.OfPrincipal, Agent: r.Agent, Workspace: r.Workspace, Project: r.Project, Tool: r.Tool,
		Thread: r.Thread}
	s.line("covers", "%s", printable(covered.String()))
	if !r.Until.IsZero() {
		s.line("until", "%s", r.Until.UTC().Format(timeLayout))
	}
	s.line("reason", "%s", printable(r.Reason))
}

// stages says which stages a decision passed, and which refused it.
func stages(r *audit.Record) string {
	order := slices.DeleteFunc(refusal.Stages(), func(s refusal.Stage) bool {
		return s == refusal.Request || s == refusal.Execute || s == refusal.Wrap || s == refusal.Any
	})
	if r.Verdict == audit.Text {
		order = []refusal.Stage{refusal.Identity, refusal.Parse, refusal.Log}
	}
	var parts []string
	for _, stage := range order {
		if r.Verdict == audit.Refused && r.Stage == refusal.Permission && stage == refusal.Schema {
			continue // an agent that may never use a tool is refused before the schema is looked at
		}
		if r.Verdict == audit.Refused && stage == r.Stage {
			return strings.Join(append(parts, string(stage)+" REFUSED"), ", ")
		}
		parts = append(parts, string(stage)+" ok")
	}
	if r.Verdict == audit.Refused {
		return cell(string(r.Stage)) + " REFUSED"
	}
	return strings.Join(parts, ", ")
}
