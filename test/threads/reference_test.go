package threads_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/refusal"
)

// This file is docs/threads.md and "Policy" of docs/reference.md a second time: it keeps every event of the audit logs, counts
// them anew for each question, and knows nothing of how the gateway does it.

// term is a member of thread or caller.
type term struct {
	caller       bool
	member       string // labels, calls, sum or results
	tool, of     string // a pattern of tools, and the member that is summed
	key          string // the member of the arguments by which it counts; empty: all calls
	value        string // of the key; empty: that of the call itself
	window       string
	windowLength time.Duration
}

// String is the term as the log has it: without the values of its keys.
func (t term) String() string { return t.text("{'" + t.key + "'}") }

func (t term) text(keys string) string {
	if t.member == "labels" {
		return "thread.labels"
	}
	parts := []string{"'" + t.tool + "'"}
	if t.of != "" {
		parts = append(parts, "'"+t.of+"'")
	}
	if t.key != "" {
		parts = append(parts, keys)
	}
	if t.window != "" {
		parts = append(parts, "'"+t.window+"'")
	}
	whose := "thread."
	if t.caller {
		whose = "caller."
	}
	return whose + t.member + "(" + strings.Join(parts, ",") + ")"
}

// source is the term as it is written in a row.
func (t term) source() string {
	value := "args." + t.key
	if t.value != "" {
		value = "'" + t.value + "'"
	}
	return t.text("{'" + t.key + "': " + value + "}")
}

// condition is one of a small part of the language of conditions.
type condition struct {
	op          string // &&, ||, !, in, or a comparison
	left, right *condition
	term        term
	label       string
	bound       string // a number
}

func (c *condition) source() string {
	switch c.op {
	case "&&", "||":
		return "(" + c.left.source() + ") " + c.op + " (" + c.right.source() + ")"
	case "!":
		return "!(" + c.left.source() + ")"
	case "in":
		return "'" + c.label + "' in thread.labels"
	}
	return c.term.source() + " " + c.op + " " + c.bound
}

func (c *condition) terms() []term {
	switch {
	case c == nil:
		return nil
	case c.left != nil:
		return append(c.left.terms(), c.right.terms()...)
	}
	return []term{c.term}
}

// rule is a row of a policy, for everybody.
type rule struct {
	tool   string
	when   *condition // nil: always
	effect string     // allow, deny or ask:one
}

func (r rule) String() string {
	when := ""
	if r.when != nil {
		when = `"` + r.when.source() + `"`
	}
	return "p, Analyst, *, " + r.tool + ", " + when + ", " + r.effect
}

// fits reports whether a pattern matches a tool.
func fits(pattern, tool string) bool {
	if prefix, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(tool, prefix)
	}
	return pattern == tool
}

// made is a call of which the log has a decision.
type made struct {
	audit.Record
	args   map[string]any
	answer int // the answer of a model that it is part of, and its place there
	place  int
	at     time.Time // when it was let through
}

func (m *made) argument(name string) string { return fmt.Sprint(m.args[name]) }

// caller and thread are the names of the lists of a call; an empty name is no thread. All calls of the principal "one" are one
// thread, and one whose name has a dot comes from the thread before the dot.
func (m *made) caller() string { return "caller " + m.Principal }
func (m *made) thread() string {
	root, _, _ := strings.Cut(m.Thread, ".")
	switch {
	case m.Principal == "one":
		root = "its own"
	case root == "":
		return ""
	}
	return "thread " + m.Principal + " " + root
}

// event is a change of a thread or a caller.
type event struct {
	turn uint64
	kind string // call, result or undo
	of   *made
	at   time.Time
	undo []string
}

// book is what the logs say.
type book struct {
	rules   []rule
	labels  func(tool string, args map[string]any) []string
	answers map[int][]*made
	lists   map[string][]event // of each thread and of each caller, in the order of their turns
	keys    map[string]string  // the values of keys by their digests
	unsure  map[string]int     // since when a list may have changes that no log has: a gateway was killed before it wrote them
	judged  int
	skipped int // where it may have
}

// keyed is how the log says what was added to a term with keys.
var keyed = regexp.MustCompile(`\{'(\w+)'\}[^#]*#(\w+)=`)

// read writes the logs into a book. Withheld has the arguments that the log does not have, by their digests;
// where a gateway was killed, changes of which it had not written the record yet are missing.
func read(rules []rule, labels func(string, map[string]any) []string, withheld map[string]string, killed bool, unsure map[string]int, logs ...[]audit.Record) (*book, error) {
	b := &book{rules: rules, labels: labels, answers: map[int][]*made{}, lists: map[string][]event{}, keys: map[string]string{}, unsure: unsure}
	calls, ledgers, threads := map[string]*made{}, map[string]string{}, map[string]string{}
	var endings []audit.Record
	for _, r := range slices.Concat(logs...) {
		switch {
		case r.Event == audit.Ending:
			endings = append(endings, r)
			continue
		case r.Event != audit.Decision || r.Tool == "":
			continue
		}
		m := &made{Record: r}
		if r.Arguments == nil { // a hook has denied them
			m.Arguments = json.RawMessage(withheld[r.ArgumentsSHA256])
		}
		d := json.NewDecoder(strings.NewReader(string(m.Arguments)))
		d.UseNumber()
		if err := d.Decode(&m.args); err != nil {
			return nil, fmt.Errorf("the arguments of %s: %w", r.CallID, err)
		}
		n, err := m.args["n"].(json.Number).Int64()
		if err != nil {
			return nil, err
		}
		m.answer, m.place, m.at = int(n/10), int(n%10), addedAt(r.Adds)
		if calls[r.CallID] != nil {
			return nil, fmt.Errorf("%s has two decisions", r.CallID)
		}
		calls[r.CallID] = m
		b.answers[m.answer] = append(b.answers[m.answer], m)
		for _, add := range r.Adds {
			if found := keyed.FindStringSubmatch(add); found != nil {
				value, digest := m.argument(found[1]), found[2]
				if other, known := b.keys[digest]; known && other != value {
					return nil, fmt.Errorf("the values %q and %q have one digest", value, other)
				}
				b.keys[digest] = value
			}
		}
		if r.Ledger != "" {
			if other, known := ledgers[r.Ledger]; known && other != m.thread() {
				return nil, fmt.Errorf("%q and %q have one ledger", other, m.thread())
			}
			if other, known := threads[m.thread()]; known && other != r.Ledger {
				return nil, fmt.Errorf("%q has two ledgers", m.thread())
			}
			ledgers[r.Ledger], threads[m.thread()] = m.thread(), r.Ledger
		}
		if r.Code != "" { // what was refused leaves nothing
			if r.Turn > 0 || r.CallerTurn > 0 || len(r.Adds) > 0 {
				return nil, fmt.Errorf("%s is refused, and added %q at %d, %d", r.CallID, r.Adds, r.Turn, r.CallerTurn)
			}
			continue
		}
		if of, own := b.counted(m); of && r.Turn == 0 || own && r.CallerTurn == 0 {
			return nil, fmt.Errorf("%s is let through, and has no turn", r.CallID)
		}
		b.add("call", m, r, m.at)
	}
	for _, r := range endings {
		m, known := calls[r.CallID]
		switch {
		case !known:
			return nil, fmt.Errorf("%s has an outcome and no decision", r.CallID)
		case m.Code != "":
			if r.Turn > 0 || r.CallerTurn > 0 {
				return nil, fmt.Errorf("%s is refused, and its outcome has a turn", r.CallID)
			}
		case len(r.Undo) > 0:
			b.add("undo", m, r, time.Time{})
		case r.Outcome == audit.Result:
			if r.Turn == 0 && b.results(m) {
				return nil, fmt.Errorf("%s has a result without a turn", r.CallID)
			}
			b.add("result", m, r, addedAt(r.Adds))
		case r.Turn > 0:
			return nil, fmt.Errorf("%s has ended as %s, which adds nothing, at turn %d", r.CallID, r.Outcome, r.Turn)
		}
	}
	for name, list := range b.lists {
		slices.SortFunc(list, func(a, b event) int { return cmp.Compare(a.turn, b.turn) })
		for i, e := range list[min(1, len(list)):] {
			if before := list[i].turn; e.turn == before || e.turn > before+1 && !killed {
				return nil, fmt.Errorf("%s has the turn %d behind %d", name, e.turn, before)
			}
		}
	}
	for _, calls := range b.answers {
		slices.SortFunc(calls, func(a, b *made) int { return a.place - b.place })
	}
	return b, nil
}

func (b *book) add(kind string, m *made, r audit.Record, at time.Time) {
	for list, turn := range map[string]uint64{m.thread(): r.Turn, m.caller(): r.CallerTurn} {
		if turn > 0 {
			b.lists[list] = append(b.lists[list], event{turn, kind, m, at, r.Undo})
		}
	}
}

// terms are all that the rules read.
func (b *book) terms() (all []term) {
	for _, r := range b.rules {
		all = append(all, r.when.terms()...)
	}
	return all
}

// counted reports whether a condition may read what a call adds: to its thread, and to its caller. A call that is handed over
// adds its result, too.
func (b *book) counted(m *made) (thread, caller bool) {
	thread = m.Mode == audit.Enforce && b.results(m)
	for _, t := range b.terms() {
		switch {
		case t.member == "labels":
			thread = thread || len(b.labels(m.Tool, m.args)) > 0
		case t.member != "results" && fits(t.tool, m.Tool):
			thread, caller = thread || !t.caller, caller || t.caller
		}
	}
	return thread, caller
}

// results reports whether a condition counts the result of a call.
func (b *book) results(m *made) bool {
	return slices.ContainsFunc(b.terms(), func(t term) bool { return t.member == "results" && fits(t.tool, m.Tool) })
}

// needs reports whether a call needs a thread: a row about its tool asks what a thread has done, a condition counts the tool in
// its thread, or it adds a label. Nothing is asked of a tool that rows only allow, one of them in any case.
func (b *book) needs(m *made) bool {
	var asks, allowed, asksLabels bool
	for _, t := range b.terms() {
		asksLabels = asksLabels || t.member == "labels"
		if t.member != "labels" && !t.caller && fits(t.tool, m.Tool) {
			return true
		}
	}
	onlyAllow := true
	for _, r := range b.rules {
		if fits(r.tool, m.Tool) {
			asks = asks || slices.ContainsFunc(r.when.terms(), func(t term) bool { return !t.caller })
			allowed, onlyAllow = allowed || r.when == nil, onlyAllow && r.effect == "allow"
		}
	}
	return asks && !(allowed && onlyAllow) || asksLabels && b.labels(m.Tool, nil) != nil
}

func addedAt(adds []string) time.Time {
	for _, add := range adds {
		if text, ok := strings.CutPrefix(add, "at:"); ok {
			at, _ := time.Parse(time.RFC3339Nano, text)
			return at
		}
	}
	return time.Time{}
}

// moment is where a call is judged: behind some events of its thread and its caller, after the calls before it in its answer.
type moment struct {
	*book
	thread, caller []event
	before         []*made
	self           *made
	now            time.Time
}

// value is that of a term; it is not known where ok is false.
func (m *moment) value(t term) (text string, number *big.Rat, ok bool) {
	if t.member == "labels" {
		all := map[string]bool{}
		for _, e := range m.thread {
			for _, label := range m.labels(e.of.Tool, e.of.args) {
				if e.kind == "call" && !undone(m.thread, e.of, "label:"+label) {
					all[label] = true
				}
			}
		}
		return strings.Join(slices.Sorted(maps.Keys(all)), ","), nil, true
	}
	list := m.thread
	if t.caller {
		list = m.caller
	}
	number, exact := new(big.Rat), true
	count := func(of *made, at time.Time) {
		if !fits(t.tool, of.Tool) || t.key != "" && of.argument(t.key) != m.keyOf(t) || !t.within(at, m.now) {
			return
		}
		one := big.NewRat(1, 1)
		if t.of != "" {
			one.SetString(of.argument(t.of))
		}
		exact = exact && new(big.Rat).Mul(one, big.NewRat(1e6, 1)).IsInt()
		number.Add(number, one)
	}
	for _, e := range list {
		handedOver := e.kind == "call" && e.of.Mode == audit.Enforce // which counts as a result for later answers
		switch {
		case t.member == "results" && (e.kind == "result" || handedOver && !undone(list, e.of, "")), t.member != "results" && e.kind == "call" && !undone(list, e.of, ""):
			count(e.of, e.at)
		}
	}
	if t.member != "results" {
		for _, of := range append(slices.Clone(m.before), m.self) {
			count(of, m.now)
		}
	}
	if !exact || number.Cmp(big.NewRat(9e9, 1)) > 0 {
		return "?", nil, false
	}
	if text = number.FloatString(6); strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text, number, true
}

func (m *moment) keyOf(t term) string {
	if t.value != "" {
		return t.value
	}
	return m.self.argument(t.key)
}

// within reports whether a time is in the step of the window that runs, or in one of the 60 before it.
func (t term) within(at, now time.Time) bool {
	if t.windowLength == 0 {
		return true
	}
	step := t.windowLength.Nanoseconds() / 60
	return now.UnixNano()/step-at.UnixNano()/step <= 60
}

// undone reports whether a call was taken away again, or, where label is not empty, that label of it.
func undone(list []event, of *made, label string) bool {
	return slices.ContainsFunc(list, func(e event) bool {
		return e.kind == "undo" && e.of == of && (label == "" || slices.Contains(e.undo, label))
	})
}

// holds is what a condition comes to; it fails where it reads what is not known. It is read from the left, until the rest
// cannot change it; read takes the terms.
func (m *moment) holds(c *condition, read func(term)) (is, fails bool) {
	if c == nil {
		return true, false
	}
	switch c.op {
	case "&&", "||":
		if is, fails = m.holds(c.left, read); fails || is == (c.op == "||") {
			return is, fails
		}
		return m.holds(c.right, read)
	case "!":
		is, fails = m.holds(c.left, read)
		return !is && !fails, fails
	}
	read(c.term)
	text, number, known := m.value(c.term)
	if !known {
		return false, true
	}
	if c.op == "in" {
		return slices.Contains(strings.Split(text, ","), c.label), false
	}
	bound, _ := new(big.Rat).SetString(c.bound)
	order := number.Cmp(bound)
	return map[string]bool{"<": order < 0, "<=": order <= 0, "==": order == 0, "!=": order != 0, ">=": order >= 0, ">": order > 0}[c.op], false
}

// seen is a term with the values of its keys, and its value, as saw has them.
type seen struct{ term, keys, value string }

func (m *moment) see(t term) seen {
	value, _, _ := m.value(t)
	is := seen{term: t.String(), value: value}
	if t.key != "" {
		is.keys = m.keyOf(t)
	}
	return is
}

// judge is what the policy says of the call: nothing, permission_denied or approval_required. It fails where what the record
// says that the conditions saw is not so, or where what they must have read is missing: by one of the rows that deny, where
// one does; by all that deny or ask, where none denies; by all, where nothing permits.
func (m *moment) judge() (code refusal.Code, err error) {
	var asked, permitted bool
	var denials []map[seen]bool
	may, denying, others := map[seen]bool{}, map[seen]bool{}, map[seen]bool{}
	for _, r := range m.rules {
		if !fits(r.tool, m.self.Tool) {
			continue
		}
		for _, t := range r.when.terms() {
			may[m.see(t)] = true
		}
		read := map[seen]bool{}
		is, fails := m.holds(r.when, func(t term) { read[m.see(t)] = true })
		switch r.effect {
		case "deny":
			if is || fails {
				denials = append(denials, read)
			}
		case "allow":
			permitted = permitted || is
			maps.Copy(others, read)
			continue
		default:
			asked, permitted = asked || is || fails, permitted || is
		}
		maps.Copy(denying, read)
	}
	saw := map[seen]bool{}
	for _, text := range m.self.Saw {
		ones, err := m.readSaw(text, may)
		if err != nil {
			return "", err
		}
		for _, one := range ones {
			saw[one] = true
		}
	}
	all := func(of map[seen]bool) error {
		for one := range of {
			if !saw[one] {
				return fmt.Errorf("did not see %v, only %q", one, m.self.Saw)
			}
		}
		return nil
	}
	switch {
	case len(denials) > 0:
		for _, read := range denials {
			if err = all(read); err == nil {
				break
			}
		}
		return refusal.PermissionDenied, err
	case !permitted:
		maps.Copy(denying, others)
		code = refusal.PermissionDenied
	case asked:
		code = refusal.ApprovalRequired
	}
	return code, all(denying)
}

// readSaw returns what one text of saw may stand for, each of which a row may have seen. Of the values of keys it has a digest:
// one that no call has added may be that of all values that none has.
func (m *moment) readSaw(text string, may map[seen]bool) (all []seen, err error) {
	i := strings.LastIndex(text, "=")
	is := seen{term: text[:i], value: text[i+1:]}
	if j := strings.LastIndex(is.term, ")#"); j < 0 {
		all = append(all, is)
	} else if value, known := m.keys[is.term[j+2:]]; known {
		all = append(all, seen{is.term[:j+1], value, is.value})
	} else {
		added := slices.Collect(maps.Values(m.keys))
		for one := range may {
			if one.term == is.term[:j+1] && one.value == is.value && !slices.Contains(added, one.keys) {
				all = append(all, one)
			}
		}
	}
	if len(all) == 0 || !may[all[0]] {
		return nil, fmt.Errorf("saw %s, expected one of %v", text, slices.Collect(maps.Keys(may)))
	}
	return all, nil
}

// times are the beginning and the end of an answer, by one clock that counts, and the time of the ledger.
type times struct {
	begun, ended int
	now          time.Time
	calls        int
	killed       bool // its gateway was, before it ended: what became of its calls is found out later
}

// check judges every answer of the log anew.
func (b *book) check(when map[int]times) error {
	for _, answer := range slices.Sorted(maps.Keys(b.answers)) {
		if err := b.checkAnswer(answer, when); err != nil {
			return fmt.Errorf("answer %d: %w", answer, err)
		}
	}
	return nil
}

func (b *book) checkAnswer(answer int, when map[int]times) error {
	calls := b.answers[answer]
	for _, list := range []string{calls[0].thread(), calls[0].caller()} {
		if since, unsure := b.unsure[list]; unsure && since < when[answer].ended {
			b.skipped += len(calls)
			return nil
		}
	}
	var why []string
	threads, callers := b.prefixes(calls[0].thread(), answer, when), b.prefixes(calls[0].caller(), answer, when)
	for _, p := range threads {
		for _, q := range callers {
			err := b.judgeAt(calls, p, q, when[answer])
			if err == nil {
				b.judged += len(calls)
				return nil
			}
			why = append(why, fmt.Sprintf("behind %d of the thread and %d of the caller: %v", len(p), len(q), err))
		}
	}
	if !slices.ContainsFunc(calls, func(c *made) bool { return c.Code != refusal.PermissionDenied }) && b.judgedAgain(calls, threads, callers, when[answer]) {
		b.judged += len(calls)
		return nil
	}
	return errors.New(strings.Join(slices.Compact(why), "\n"))
}

// prefixes are the events before which an answer can have been judged. Where it has added to the list, it is one.
func (b *book) prefixes(list string, answer int, when map[int]times) (all [][]event) {
	events := b.lists[list]
	if own := slices.IndexFunc(events, func(e event) bool { return e.of.answer == answer && e.kind == "call" }); own >= 0 {
		return [][]event{events[:own]}
	}
	for i := range len(events) + 1 {
		if !slices.ContainsFunc(events[i:], func(e event) bool {
			return when[e.of.answer].ended <= when[answer].begun && !(when[e.of.answer].killed && e.kind != "call")
		}) && !slices.ContainsFunc(events[:i], func(e event) bool { return when[e.of.answer].begun >= when[answer].ended }) {
			all = append(all, events[:i])
		}
	}
	return all
}

// beforePermission are the stages in which the policy has not been asked.
var beforePermission = []refusal.Stage{refusal.Request, refusal.Identity, refusal.Parse, refusal.Schema}

// unavailable is what a gateway says whose Redis is away, as the one that was killed must.
var unavailable = []refusal.Code{refusal.StoreUnavailable, refusal.ThreadsUnavailable}

// judgeAt fails where the log says another thing of the calls of an answer than the policy does at a moment: all or none of them
// pass.
func (b *book) judgeAt(calls []*made, thread, caller []event, is times) error {
	found := calls[0].Code
	for i, c := range calls {
		if c.Code != found {
			return fmt.Errorf("call %d is refused as %q, the first as %q", i, c.Code, found)
		}
	}
	if slices.Contains(beforePermission, calls[0].Stage) || is.killed && slices.Contains(unavailable, found) {
		return nil
	}
	var expected refusal.Code
	for i, c := range calls {
		if c.thread() == "" && b.needs(c) {
			expected = refusal.ThreadRequired
			continue
		}
		code, err := b.momentOf(calls, i, thread, caller, is).judge()
		if err != nil {
			return fmt.Errorf("call %d, %s %s: %w", i, c.Tool, c.Arguments, err)
		}
		if expected == "" || code == refusal.PermissionDenied {
			expected = code
		}
	}
	if len(calls) < is.calls { // a kill has cut off which call is refused
		return nil
	}
	if found != expected && !(slices.Contains([]refusal.Code{"", refusal.ApprovalRequired}, expected) && b.otherwise(calls, found)) {
		return fmt.Errorf("found %q, expected %q", found, expected)
	}
	return nil
}

// momentOf is where a call of an answer is judged.
func (b *book) momentOf(calls []*made, i int, thread, caller []event, is times) *moment {
	m := &moment{b, thread, caller, calls[:i], calls[i], is.now}
	if !calls[i].at.IsZero() {
		m.now = calls[i].at
	}
	if m.now.IsZero() {
		m.now = calls[i].Time
	}
	return m
}

// judgedAgain reports whether an answer that had passed was refused as its calls were to be kept, since its past had moved:
// the first that is denied then ends that, so the calls behind it have seen what was there before.
func (b *book) judgedAgain(calls []*made, threads, callers [][]event, is times) bool {
	deniesFirst := func(from, to int, thread, caller []event) int { // the call that is; -1: another has not seen this
		for i := from; i < to; i++ {
			if code, err := b.momentOf(calls, i, thread, caller, is).judge(); err != nil {
				return -1
			} else if code == refusal.PermissionDenied {
				return i
			}
		}
		return to
	}
	for _, thread := range threads {
		for _, caller := range callers {
			denied := deniesFirst(0, len(calls), thread, caller)
			if denied < 0 || denied == len(calls) {
				continue
			}
			for _, before := range threads {
				for _, callerBefore := range callers {
					if len(before) <= len(thread) && len(callerBefore) <= len(caller) && deniesFirst(denied+1, len(calls), before, callerBefore) == len(calls) {
						return true
					}
				}
			}
		}
	}
	return false
}

// otherwise reports whether a check behind the policy may have refused the calls as it says, before people are asked.
func (b *book) otherwise(calls []*made, found refusal.Code) bool {
	switch found {
	case refusal.RateLimited:
		return slices.ContainsFunc(calls, func(m *made) bool { return m.Tool == "web.fetch" })
	case refusal.HookDenied:
		return slices.ContainsFunc(calls, func(m *made) bool { return m.args["path"] == "FORBIDDEN" })
	}
	return false
}
