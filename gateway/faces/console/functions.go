package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html/template"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/gateway/faces/admin"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store/approval"
)

// maxShown is how many bytes of one text a page shows.
const maxShown = 64 << 10

// functions are those of the templates.
func (c *Console) functions() template.FuncMap {
	return template.FuncMap{
		"asset":     func(name string) asset { return c.assets[name] },
		"at":        func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05.000") },
		"iso":       func(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") },
		"ago":       func(t time.Time) string { return ago(t, time.Now()) },
		"clock":     func(t time.Time) string { return clock(t, time.Now()) },
		"version":   version,
		"agentpath": agentPath,
		"toolpath":  toolPath,
		"agents":    countsAgents,
		"arguments": arguments,
		"cut":       cut,
		"indent":    indent,
		"brief":     brief,
		"short":     short,
		"allowing":  allowing,
		"rowpath":   rowPath,
		"member":    func(raw json.RawMessage) string { return brief(indent(raw)) },
		"link":      link,
		"marked":    marked,
		"micros":    micros,
		"place":     func(workspace, project string) string { return workspace + "/" + project },
		"status":    statusOf,
		"verdicts":  func() []verdictFilter { return verdictFilters },
		"codes":     sortedCounts[refusal.Code],
		"spans":     admin.Spans,
		"busy":      busy,
		"stages":    stagesOf,
		"reach":     func(t admin.Tool, i int) string { return t.Reach[i] },
		"labelled":  func(label string, list []admin.Decision) labelled { return labelled{Label: label, Decisions: list} },
		"markedat":  func(text string, offset int) marks { return marked(text, &offset) },
		"within":    strings.HasPrefix,
		"state":     stateOf,
		"asks":      asksOf,
		"used":      usedBy,
		"kinds":     admin.LimitKinds,
		"bytes":     bytesOf,
		"millis":    func(n int64) string { return time.Duration(n * int64(time.Millisecond)).Round(roundingOf(n)).String() },
	}
}

// plainName is a name that means itself alone in a row of a policy.
var plainName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*$`)

// allowing is the row that would allow a call that no row matches, and a comment where a name could mean more
// than itself: a model may call a tool "*". It is empty where another row denies the call.
func allowing(e *admin.Explained) string {
	if e.Allowed || e.Row != nil {
		return ""
	}
	for _, name := range []string{e.Agent, e.Workspace, e.Project, e.Tool} {
		if !plainName.MatchString(name) {
			return "# A name of this call is not a plain one: write its row by hand."
		}
	}
	return fmt.Sprintf("p, %s, %s/%s, %s, , allow", e.Agent, e.Workspace, e.Project, e.Tool)
}

// rowPath leads to a row on the page of the policy, which begins some rows before it.
func rowPath(line int) string {
	const before = 10
	path := "/console/policy"
	if line > before {
		path = link(path, "after", strconv.Itoa(line-before))
	}
	return fmt.Sprintf("%s#line-%d", path, line)
}

// labelled is a table of decisions and its name.
type labelled struct {
	Label     string
	Decisions []admin.Decision
	Since     string // that links to calls like these keep
	counts    []int  // how often each was made; nil: once
}

// Times is how often a decision was made, where that is more than once; else 0.
func (l labelled) Times(i int) int {
	if i >= len(l.counts) || l.counts[i] == 1 {
		return 0
	}
	return l.counts[i]
}

// cut shortens a text and says how long it was.
func cut(s string) string {
	if len(s) <= maxShown {
		return s
	}
	return fmt.Sprintf("%s ... (%d bytes in all)", strings.ToValidUTF8(s[:maxShown], ""), len(s))
}

// maxBrief is how many bytes a page shows of one of many texts.
const maxBrief = 1 << 10

// brief shortens one of many texts, and says how long it was.
func brief(s string) string {
	if len(s) <= maxBrief {
		return s
	}
	return fmt.Sprintf("%s ... (%d bytes in all)", strings.ToValidUTF8(s[:maxBrief], ""), len(s))
}

// maxShort is how many bytes of its arguments a row of the approvals shows.
const maxShort = 160

// short returns the beginning of arguments, on one line.
func short(raw json.RawMessage) string {
	if len(raw) <= maxShort {
		return string(raw)
	}
	return strings.ToValidUTF8(string(raw[:maxShort]), "") + " ..."
}

// indent returns JSON with a line for each member; a text that is none as it is.
func indent(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return cut(string(raw))
	}
	return cut(b.String())
}

// maxIndented is the longest text of arguments that is shown with a line for each member.
const maxIndented = 256 << 10

// arguments returns arguments as people approve them: whole, however long they are.
func arguments(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil || b.Len() > maxIndented {
		return string(raw)
	}
	return b.String()
}

// stateView is the word for the state of an approval, the class that it is shown with, and whether it
// can be decided or used.
type stateView struct {
	Word, Class string
	Open        bool
}

func stateOf(s string) stateView {
	return stateView{s, stateClasses[s], s == string(approval.Waiting) || s == string(approval.Approved)}
}

// stateClasses are the classes that states of approvals are shown with.
var stateClasses = map[string]string{"waiting": "wait", "approved": "ok", "used": "ok", "denied": "no", "expired": "plain",
	"withdrawn": "plain"}

// asksOf reports whether people were asked about a call: its id is that of an approval.
func asksOf(c admin.Case) bool {
	return slices.ContainsFunc(c.Records, func(r audit.Record) bool { return r.Event == audit.Approval })
}

// usedBy returns the approvals by which a call passed, without grants: those have no page.
func usedBy(c admin.Case) (list []string) {
	for i := range c.Records {
		if r := &c.Records[i]; r.Event == audit.Decision {
			list = append(list, slices.DeleteFunc(slices.Clone(r.Approvals),
				func(id string) bool { return strings.HasPrefix(id, "grant_") })...)
		}
	}
	return list
}

// link is an address with parameters, given as names and values. Empty values are left out.
func link(path string, pairs ...string) string {
	q := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	if len(q) == 0 {
		return path
	}
	return path + "?" + q.Encode()
}

// marks is a text with a fault in it.
type marks struct {
	Before, At, After string
	Offset            int
	Left              int // bytes that are not shown before, or behind
}

// around is how much of a text is shown before and behind a fault, in bytes.
const around = maxShown / 2

// marked marks the character of a text at an offset in bytes.
func marked(text string, offset *int) marks {
	if offset == nil || *offset < 0 || *offset > len(text) {
		return marks{Before: strings.ToValidUTF8(cut(text), "\uFFFD"), Offset: -1}
	}
	m := marks{Offset: *offset}
	from, to := max(0, *offset-around), min(len(text), *offset+around)
	m.Left = from + len(text) - to
	size := 0
	if *offset < len(text) {
		_, size = utf8.DecodeRuneInString(text[*offset:])
	}
	valid := func(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
	m.Before, m.At, m.After = valid(text[from:*offset]), valid(text[*offset:*offset+size]), valid(text[min(*offset+size, to):to])
	return m
}

// micros is a time in the unit that fits.
func micros(n int64) string {
	switch d := time.Duration(n) * time.Microsecond; {
	case d < time.Millisecond:
		return fmt.Sprintf("%d µs", n)
	case d < time.Second:
		return fmt.Sprintf("%.1f ms", float64(n)/1000)
	default:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
}

// bytesOf is a number of bytes in the unit that fits.
func bytesOf(n int64) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d B", n)
	case n < 1<<20:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d MiB", n>>20)
}

// roundingOf is how exactly a time of so many milliseconds is shown.
func roundingOf(n int64) time.Duration {
	if n < 1000 {
		return time.Millisecond
	}
	return time.Second / 10
}

// The words for verdicts, on every page.
const (
	wordAllowed = "allowed"
	wordAsked   = "sent for approval"
	wordRefused = "refused"
	wordText    = "answered without a tool"
)

// verdictView is the word for a decision, the class that it is shown with, and what came then.
type verdictView struct{ Word, Class, Then string }

// statusOf says what became of a decision.
func statusOf(d admin.Decision) verdictView {
	switch {
	case d.Verdict == audit.Refused && d.Code == refusal.ApprovalRequired:
		return verdictView{wordAsked, "wait", ""}
	case d.Verdict == audit.Refused:
		return verdictView{wordRefused, "no", ""}
	case d.Verdict == audit.Text:
		return verdictView{wordText, "plain", ""}
	case d.Ended == nil && d.Mode == audit.Call:
		return verdictView{wordAllowed, "ok", "running"}
	case d.Ended == nil, d.Ended.Outcome == audit.HandedOver:
		return verdictView{wordAllowed, "ok", "handed over"}
	}
	return verdictView{wordAllowed, "ok", string(d.Ended.Outcome)}
}

// count is a name and how often it was there.
type count struct {
	Name string
	N    int
}

// sortedCounts lists counts, the highest first.
func sortedCounts[K ~string](of map[K]int) []count {
	var list []count
	for _, name := range slices.Sorted(maps.Keys(of)) {
		list = append(list, count{string(name), of[name]})
	}
	slices.SortStableFunc(list, func(a, b count) int { return b.N - a.N })
	return list
}

// stageView is a stage of the strip: passed, refused, asked or not run. Word is how pages call that.
type stageView struct {
	Name, State, Word string
	Micros            int64
}

const stageAsked = "asked"

// order is that of the pipeline.
var order = []refusal.Stage{
	refusal.Identity, refusal.Parse, refusal.Schema, refusal.Permission, refusal.Rate, refusal.Workspace, refusal.Project, refusal.Approval,
	refusal.Log, refusal.Execute, refusal.Wrap,
}

// stagesOf is the strip of stages of a call: what the record says, with times where they are
// kept. The stages before the one that refused were passed.
func stagesOf(c admin.Case) []stageView {
	took := map[refusal.Stage]int64{}
	for _, s := range c.Stages {
		took[s.Stage] = s.Micros
	}
	var failed refusal.Stage
	ended, isText, asked := false, false, false
	for i := range c.Records {
		if r := &c.Records[i]; r.Stage != "" {
			failed = r.Stage
		}
		asked = asked || c.Records[i].Code == refusal.ApprovalRequired
		ended = ended || c.Records[i].Event == audit.Ending
		isText = isText || c.Records[i].Verdict == audit.Text
	}
	list := make([]stageView, 0, len(order))
	state := "passed"
	for _, stage := range order {
		if isText && stage != refusal.Identity && stage != refusal.Parse && stage != refusal.Log {
			continue
		}
		if (stage == refusal.Execute || stage == refusal.Wrap) && !ended && state == "passed" {
			state = "not run"
		}
		if stage == failed {
			state = "refused"
			if asked {
				state = stageAsked
			}
		}
		word := state
		if state == stageAsked {
			word = wordAsked
		}
		list = append(list, stageView{string(stage), state, word, took[stage]})
		if state == "refused" || state == stageAsked {
			state = "not run"
		}
	}
	return list
}
