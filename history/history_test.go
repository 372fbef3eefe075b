package history_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/history"
)

var (
	start  = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	secret = func() *history.Secret {
		s, err := history.NewSecret([]byte(strings.Repeat("s", history.MinSecret)))
		if err != nil {
			panic(err)
		}
		return s
	}()
)

func matches(pattern, tool string) bool {
	prefix, any := strings.CutSuffix(pattern, "*")
	return any && strings.HasPrefix(tool, prefix) || pattern == tool
}

func newTerms(t testing.TB, terms ...history.Term) *history.Terms {
	t.Helper()
	all, err := history.NewTerms(terms, matches)
	if err != nil {
		t.Fatal(err)
	}
	all.Labels = true
	return all
}

func arguments(t testing.TB, text string) map[string]any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var args map[string]any
	if err := d.Decode(&args); err != nil {
		t.Fatal(err)
	}
	return args
}

func addsOf(t testing.TB, terms *history.Terms, tool, args string, at time.Time) history.Adds {
	t.Helper()
	a, err := terms.Adds(tool, arguments(t, args), secret, at)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// keptAlways is a Keeping that has kept the terms for ever.
func keptAlways(terms *history.Terms) *history.Keeping {
	return (*history.Keeping)(nil).With("", terms, time.Time{})
}

// valueOf is what a term is without a call that counts itself; -1: it is not known.
func valueOf(terms *history.Terms, s *history.State, now time.Time, term history.Term, keys ...any) int64 {
	past := history.Past{Thread: s, Caller: s, Keeping: keptAlways(terms), Now: now}
	n, err := history.NewView(terms, secret, past, nil, history.Adds{}).Value(term.ID(), keys...)
	if err != nil {
		return -1
	}
	return n
}

var (
	pays    = history.Term{Tool: "pay"}
	paid    = history.Term{Kind: history.Sum, Tool: "pay", Member: "amount", Keys: []string{"currency"}}
	anyHour = history.Term{Tool: "*", Window: time.Hour}
	byPath  = history.Term{Tool: "read", Keys: []string{"path"}}
	callers = history.Term{Caller: true, Kind: history.Sum, Tool: "p*", Member: "amount", Keys: []string{"currency"}, Window: 2 * time.Hour}
	results = history.Term{Kind: history.Results, Tool: "read", Keys: []string{"path"}, Window: time.Minute}
)

func TestTermText(t *testing.T) {
	for _, tt := range []struct {
		term history.Term
		text string
	}{
		{pays, `thread.calls('pay')`},
		{paid, `thread.sum('pay','amount',{'currency'})`},
		{anyHour, `thread.calls('*','1h')`},
		{callers, `caller.sum('p*','amount',{'currency'},'2h')`},
		{results, `thread.results('read',{'path'},'1m')`},
		{history.Term{Tool: "a", Keys: []string{"b", "c"}, Window: 90 * time.Minute}, `thread.calls('a',{'b','c'},'1h30m')`},
		{history.Term{Tool: `q"'é\`, Window: 90 * time.Second}, `thread.calls('q\"\x27\u00e9\\','1m30s')`},
		{history.Term{Tool: "a", Window: 24 * time.Hour}, `thread.calls('a','24h')`},
	} {
		if tt.term.String() != tt.text {
			t.Errorf("found %s, expected %s", tt.term, tt.text)
		}
	}
}

func TestNewTerms(t *testing.T) {
	many := make([]history.Term, history.MaxTerms+1)
	for i := range many {
		many[i] = history.Term{Tool: fmt.Sprint("t", i)}
	}
	windows := make([]history.Term, history.MaxWindowed+1)
	for i := range windows {
		windows[i] = history.Term{Tool: fmt.Sprint("t", i), Window: time.Hour}
	}
	for name, terms := range map[string][]history.Term{
		"no tool":               {{}},
		"no such kind":          {{Tool: "a", Kind: 7}},
		"sum of nothing":        {{Tool: "a", Kind: history.Sum}},
		"calls of a member":     {{Tool: "a", Member: "m"}},
		"keys out of order":     {{Tool: "a", Keys: []string{"b", "a"}}},
		"a key twice":           {{Tool: "a", Keys: []string{"a", "a"}}},
		"a short window":        {{Tool: "a", Window: time.Second}},
		"a long window":         {{Tool: "a", Window: 8 * 24 * time.Hour}},
		"caller without window": {{Tool: "a", Caller: true}},
		"results of a caller":   {{Tool: "a", Caller: true, Kind: history.Results, Window: time.Hour}},
		"a term twice":          {pays, pays},
		"too many":              many,
		"too many windows":      windows,
	} {
		if _, err := history.NewTerms(terms, matches); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := history.NewTerms(many[1:], matches); err != nil {
		t.Error(err)
	}
}

func TestCountsTheCallItself(t *testing.T) {
	terms := newTerms(t, pays, paid)
	one := addsOf(t, terms, "pay", `{"amount": 10.5, "currency": "EUR"}`, start)
	s := (*history.State)(nil).Apply(one, false)
	past := history.Past{Thread: s, Keeping: keptAlways(terms), Now: start}
	before := addsOf(t, terms, "pay", `{"amount": 1e2, "currency": "USD"}`, start)
	v := history.NewView(terms, secret, past, []history.Adds{before}, addsOf(t, terms, "pay", `{"amount": 489.5, "currency": "EUR"}`, start))
	for _, tt := range []struct {
		term history.Term
		keys []any
		want int64
	}{
		{pays, nil, 3},
		{paid, []any{"EUR"}, 500_000_000},
		{paid, []any{"USD"}, 100_000_000},
		{paid, []any{"GBP"}, 0},
	} {
		if n, err := v.Value(tt.term.ID(), tt.keys...); err != nil || n != tt.want {
			t.Errorf("%s%v: found %d, %v, expected %d", tt.term, tt.keys, n, err, tt.want)
		}
	}
	if _, err := v.Value(paid.ID()); err == nil {
		t.Error("a term without its keys has a value")
	}
	if _, err := v.Value(byPath.ID(), "a"); err == nil {
		t.Error("a term that is not kept has a value")
	}
	if _, err := v.Labels(); err != nil {
		t.Error(err)
	}
	saw := v.Saw()
	if len(saw) != 5 || saw[0] != "thread.calls('pay')=3" || saw[4] != "thread.sum('pay','amount',{'currency'})#"+saw[4][len("thread.sum('pay','amount',{'currency'})#"):] || !slices.IsSorted(saw) || !slices.Contains(saw, "thread.labels=") {
		t.Errorf("saw %q", saw)
	}
}

func TestKeysAreValues(t *testing.T) {
	terms := newTerms(t, byPath)
	for _, tt := range []struct {
		arg  string
		asks any
		want int64
	}{
		{`"a"`, "a", 1}, {`"a"`, "b", 0}, {`1.0`, json.Number("1"), 1}, {`1`, "1", 0}, {`-0`, json.Number("0"), 1},
		{`true`, true, 1}, {`true`, false, 0}, {`"true"`, true, 0}, {`null`, nil, -1}, {`[1]`, []any{}, -1}, {`1`, 1, -1}, {`1e400`, json.Number("1e401"), -1},
		{`"` + strings.Repeat("x", 4096) + `"`, strings.Repeat("x", 4096), 1},
		{`"` + strings.Repeat("x", 4097) + `"`, strings.Repeat("x", 4097), -1},
	} {
		s := history.Begin(start).Apply(addsOf(t, terms, "read", `{"path": `+tt.arg+`}`, start), false)
		if n := valueOf(terms, s, start, byPath, tt.asks); n != tt.want {
			t.Errorf("%.20s asked for %.20v: found %d, expected %d", tt.arg, tt.asks, n, tt.want)
		}
	}
	if _, err := terms.Adds("read", map[string]any{"path": "a"}, nil, start); err == nil {
		t.Error("a digest without a secret")
	}
}

func TestSumsAreExactOrUnknown(t *testing.T) {
	term := history.Term{Kind: history.Sum, Tool: "pay", Member: "amount"}
	terms := newTerms(t, term)
	for _, tt := range []struct {
		amounts []string
		want    int64
	}{
		{[]string{"0"}, 0}, {[]string{"0.1", "0.2"}, 300_000}, {[]string{"1e-6"}, 1}, {[]string{"5e-7"}, -1}, {[]string{"9e9"}, 9e15},
		{[]string{"9e9", "0.000001"}, -1}, {[]string{"9000000000.000001"}, -1}, {[]string{"1e300"}, -1}, {[]string{"-1"}, -1}, {[]string{`"1"`}, -1}, {[]string{"null"}, -1},
		{[]string{"5e-7", "1"}, -1}, {[]string{"1.50"}, 1_500_000},
	} {
		var s *history.State
		for _, n := range tt.amounts {
			s = s.Apply(addsOf(t, terms, "pay", `{"amount": `+n+`}`, start), false)
		}
		if n := valueOf(terms, s, start, term); n != tt.want {
			t.Errorf("%v: found %d, expected %d", tt.amounts, n, tt.want)
		}
	}
}

func TestFullTerms(t *testing.T) {
	windowed := byPath
	windowed.Window = time.Hour
	terms := newTerms(t, byPath, windowed)
	read := func(s *history.State, i int, at time.Time) *history.State {
		return s.Apply(addsOf(t, terms, "read", fmt.Sprintf(`{"path": %d}`, i), at), false)
	}
	path := func(i int) any { return json.Number(fmt.Sprint(i)) }
	var s *history.State
	for i := range 1024 {
		s = read(s, i, start)
	}
	if n := valueOf(terms, s, start, byPath, path(7)); n != 1 {
		t.Errorf("a value that is there, of a full term: %d", n)
	}
	if n := valueOf(terms, s, start, byPath, path(5000)); n != -1 {
		t.Errorf("a value that is not there, of a full term: %d", n)
	}
	s = read(read(s, 5000, start), 7, start)
	if n := valueOf(terms, s, start, byPath, path(7)); n != 2 {
		t.Errorf("a value that is there is counted on: %d", n)
	}
	if n := valueOf(terms, s, start, windowed, path(7)); n != -1 {
		t.Errorf("with a window, no value is known once one is missing: %d", n)
	}
	// Room that an undone call leaves is no room for a value that was not counted before.
	s = read(s.Undo(addsOf(t, terms, "read", `{"path": 1}`, start), false), 5000, start)
	if n := valueOf(terms, s, start, byPath, path(5000)); n != -1 {
		t.Errorf("a value that was counted in part: %d", n)
	}
	later := start.Add(62 * time.Minute)
	s = read(s, 5000, later)
	if n := valueOf(terms, s, later, windowed, path(5000)); n != 1 {
		t.Errorf("once the window has passed: %d", n)
	}
}

func TestUnknown(t *testing.T) {
	hour := history.Term{Tool: "pay", Window: time.Hour}
	terms := newTerms(t, pays, hour)
	begun := (*history.State)(nil).Apply(addsOf(t, terms, "pay", `{}`, start), false)
	since := func(at time.Time) *history.Keeping { return (*history.Keeping)(nil).With("a", terms, at) }
	for _, tt := range []struct {
		name          string
		past          history.Past
		all, inWindow bool // also of labels, which have no window
	}{
		{name: "no thread", past: history.Past{Keeping: since(start), Now: start}},
		{name: "nothing is kept", past: history.Past{Thread: begun, Now: start}},
		{name: "kept since before", past: history.Past{Thread: begun, Keeping: since(start), Now: start}, all: true, inWindow: true},
		{name: "kept since then", past: history.Past{Thread: begun, Keeping: since(start.Add(time.Second)), Now: start.Add(time.Minute)}},
		{name: "before the window has passed", past: history.Past{Thread: begun, Keeping: since(start.Add(time.Second)), Now: start.Add(time.Hour)}},
		{name: "once the window has passed", past: history.Past{Thread: begun, Keeping: since(start.Add(time.Second)), Now: start.Add(62 * time.Minute)}, inWindow: true},
		{name: "partial", past: history.Past{Thread: history.Unknown(start), Keeping: since(start.Add(-time.Hour)), Now: start}},
		{name: "partial, later", past: history.Past{Thread: history.Unknown(start), Keeping: since(start), Now: start.Add(62 * time.Minute)}, inWindow: true},
		{name: "another gateway keeps it later", past: history.Past{Thread: begun, Keeping: since(start).With("b", terms, start.Add(time.Second)), Now: start}},
		{name: "another does not keep it", past: history.Past{Thread: begun, Keeping: since(start).With("b", nil, start), Now: start.Add(62 * time.Minute)}},
		{name: "and has ended", past: history.Past{Thread: begun, Keeping: since(start).With("b", nil, start).Without("b", start.Add(time.Second)), Now: start.Add(62 * time.Minute)}, inWindow: true},
		{name: "not kept in between", past: history.Past{Thread: begun, Keeping: since(start).With("a", nil, start).With("a", terms, start.Add(time.Second)), Now: start}},
	} {
		v := history.NewView(terms, nil, tt.past, nil, history.Adds{})
		_, err := v.Value(pays.ID())
		_, inWindow := v.Value(hour.ID())
		_, labels := v.Labels()
		if (err == nil) != tt.all || (inWindow == nil) != tt.inWindow || (labels == nil) != tt.all {
			t.Errorf("%s: all %v, in the window %v, labels %v", tt.name, err, inWindow, labels)
		}
	}
	var none *history.View
	if _, err := none.Value(pays.ID()); err == nil || none.Saw() != nil {
		t.Error("no view knows a value")
	}
	if _, err := none.Labels(); err == nil {
		t.Error("no view knows labels")
	}
}

func TestLabels(t *testing.T) {
	label := func(call string, at time.Time, names ...string) history.Adds {
		return history.Adds{At: at, Call: call, Labels: names}
	}
	a, b := label("call_a", start, "untrusted"), label("call_b", start, "untrusted", "customer")
	s := (*history.State)(nil).Apply(a, false).Apply(b, false)
	names := func(s *history.State) (all []string) {
		for _, l := range s.Labels() {
			all = append(all, l.Name+" "+l.Call)
		}
		return all
	}
	if got := names(s); !slices.Equal(got, []string{"customer call_b", "untrusted call_a"}) {
		t.Error(got)
	}
	if got := names(s.Undo(a, false)); !slices.Equal(got, []string{"customer call_b", "untrusted call_a"}) {
		t.Errorf("a label that another call has added as well is gone: %v", got)
	}
	if got := names(s.Undo(a, false).Undo(b, false)); got != nil {
		t.Error(got)
	}
	var many []string
	for i := range history.MaxLabels {
		many = append(many, fmt.Sprintf("l%02d", i))
	}
	full := (*history.State)(nil).Apply(label("c", start, many...), false)
	if full.Partial || !full.Apply(a, false).Partial {
		t.Error("a label that cannot be kept is forgotten")
	}
}

func TestAged(t *testing.T) {
	terms := newTerms(t, pays)
	const idle, keep = 7 * 24 * time.Hour, 30 * 24 * time.Hour
	plain := (*history.State)(nil).Apply(addsOf(t, terms, "pay", `{}`, start), false)
	labelled := plain.Apply(history.Adds{At: start, Labels: []string{"untrusted"}}, false)
	for _, s := range []*history.State{plain, labelled, plain.Close(start)} {
		if s.Aged(start.Add(idle-1), idle, keep) != s {
			t.Error("it is changed before its time")
		}
		if s.Aged(start.Add(keep), idle, keep) != nil {
			t.Error("it is kept for ever")
		}
	}
	if plain.Aged(start.Add(idle), idle, keep) != nil {
		t.Error("a state without labels is kept")
	}
	if stub := plain.Close(start).Aged(start.Add(idle), idle, keep); stub == nil || !stub.Closed {
		t.Error("a closed thread is forgotten")
	}
	stub := labelled.Aged(start.Add(idle), idle, keep)
	if stub == nil || !stub.Stub || len(stub.Labels()) != 1 || stub.Aged(start.Add(idle+1), idle, keep) != stub {
		t.Fatalf("%+v", stub)
	}
	now := start.Add(idle + time.Hour)
	past := history.Past{Thread: stub, Keeping: (*history.Keeping)(nil).With("", terms, now), Now: now}
	if n, err := history.NewView(terms, nil, past, nil, history.Adds{}).Value(pays.ID()); n != 0 || err != nil {
		t.Errorf("a thread that is used again: %d, %v", n, err)
	}
	again := stub.Apply(addsOf(t, terms, "pay", `{}`, now), false)
	if again.Stub || !again.Began.Equal(now) || again.Turn != stub.Turn+1 || valueOf(terms, again, now, pays) != 1 || len(again.Labels()) != 1 {
		t.Errorf("%+v", again)
	}
	if late := again.Undo(addsOf(t, terms, "pay", `{}`, start), false); late != again {
		t.Error("a call of an earlier life was taken away from this one")
	}
}

// event is a call as the reference keeps it.
type event struct {
	history.Adds
	tool   string
	args   map[string]any
	result bool
	undone bool
}

// reference is a term by its sentence, over the whole list of what has happened; -1: it is not known.
func reference(events []event, term history.Term, now time.Time, keys []any) int64 {
	total := new(big.Rat)
	for _, e := range events {
		if e.result != (term.Kind == history.Results) || !matches(term.Tool, e.tool) {
			continue
		}
		same := true
		for i, key := range term.Keys {
			a, b := e.args[key], keys[i]
			if x, ok := a.(json.Number); ok {
				y, ok := b.(json.Number)
				same = same && ok && rat(x).Cmp(rat(y)) == 0
				continue
			}
			same = same && a == b
		}
		if !same {
			continue
		}
		if term.Window > 0 {
			step := term.Window.Microseconds() / 60
			if now.UnixMicro()/step-e.At.UnixMicro()/step > 60 {
				continue
			}
		}
		n := big.NewRat(1, 1)
		if term.Kind == history.Sum {
			n = rat(e.args[term.Member].(json.Number))
			if !new(big.Rat).Mul(n, big.NewRat(1_000_000, 1)).IsInt() {
				return -1
			}
		}
		if !e.undone {
			total.Add(total, n)
		}
	}
	if term.Kind == history.Sum {
		total.Mul(total, big.NewRat(1_000_000, 1))
	}
	return total.Num().Int64()
}

func rat(n json.Number) *big.Rat {
	r, ok := new(big.Rat).SetString(n.String())
	if !ok {
		panic(n)
	}
	return r
}

// randomTerms are different terms of few tools.
func randomTerms(r *rand.Rand) []history.Term {
	var terms []history.Term
	seen := map[string]bool{}
	for range 1 + r.IntN(12) {
		term := history.Term{Tool: []string{"pay", "read", "p*", "*"}[r.IntN(4)], Kind: history.Kind(r.IntN(3)), Caller: r.IntN(3) == 0}
		if r.IntN(2) == 0 || term.Caller {
			term.Window = []time.Duration{time.Minute, time.Hour, 7 * time.Minute, 168 * time.Hour}[r.IntN(4)]
		}
		if term.Kind == history.Results {
			term.Caller = false
		}
		if term.Kind == history.Sum {
			term.Member = "amount"
		}
		for _, key := range []string{"currency", "path"} {
			if r.IntN(3) == 0 {
				term.Keys = append(term.Keys, key)
			}
		}
		if !seen[term.String()] {
			seen[term.String()] = true
			terms = append(terms, term)
		}
	}
	return terms
}

// traffic is what happens to one thread, whose caller has no other.
type traffic struct {
	terms          *history.Terms
	thread, caller *history.State
	events         []event
	log            []record
	now            time.Time
}

// record is what the log says of a turn.
type record struct {
	texts        []string
	turn, caller uint64
	undo         bool
	call         string
}

func (w *traffic) happen(t *testing.T, r *rand.Rand) {
	w.now = w.now.Add(time.Duration(r.Int64N(int64([]time.Duration{time.Second, time.Minute, time.Hour}[r.IntN(3)]))))
	if len(w.events) > 0 && r.IntN(4) == 0 {
		e := &w.events[r.IntN(len(w.events))]
		if e.undone || e.result {
			return
		}
		e.undone = true
		w.apply(e, true)
		return
	}
	args := fmt.Sprintf(`{"amount": %s, "currency": %q, "path": %s}`, []string{"1", "10.5", "0.000001", "2e3", "5e-7", "0"}[r.IntN(6)], []string{"EUR", "USD"}[r.IntN(2)], []string{"1", "1.0", "true", `"1"`}[r.IntN(4)])
	e := event{tool: []string{"pay", "read", "post"}[r.IntN(3)], args: arguments(t, args), result: r.IntN(3) == 0}
	var err error
	if e.result {
		e.Adds, err = w.terms.ResultAdds(e.tool, e.args, secret, w.now)
	} else {
		e.Adds, err = w.terms.Adds(e.tool, e.args, secret, w.now)
	}
	if err != nil {
		t.Fatal(err)
	}
	e.At = w.now.Truncate(time.Microsecond)
	e.Call = fmt.Sprint("call_", len(w.events))
	if r.IntN(3) == 0 {
		e.Labels = []string{[]string{"untrusted", "customer"}[r.IntN(2)]}
	}
	if r.IntN(2) == 0 {
		e.Equal = 1 + r.Uint64N(3)
		if e.result {
			e.Result = 1 + r.Uint64N(2)
		}
	}
	w.events = append(w.events, e)
	w.apply(&w.events[len(w.events)-1], false)
}

func (w *traffic) apply(e *event, undo bool) {
	r := record{texts: e.Texts(), undo: undo, call: e.Call}
	for _, caller := range []bool{false, true} {
		to, turn := &w.thread, &r.turn
		if caller {
			to, turn = &w.caller, &r.caller
		}
		if !e.Changes(caller) {
			continue
		}
		if undo {
			*to = (*to).Undo(e.Adds, caller)
		} else {
			*to = (*to).Apply(e.Adds, caller)
		}
		*turn = (*to).Turn
	}
	if r.turn+r.caller > 0 {
		w.log = append(w.log, r)
	}
}

// answers are all that can be asked of a thread and its caller.
func answers(terms []history.Term, all *history.Terms, thread, caller *history.State, now time.Time) (found []string) {
	past := history.Past{Thread: thread, Caller: caller, Keeping: keptAlways(all), Now: now}
	v := history.NewView(all, secret, past, nil, history.Adds{})
	for _, term := range terms {
		for _, keys := range keysOf(term) {
			_, _ = v.Value(term.ID(), keys...)
		}
	}
	_, _ = v.Labels()
	for _, s := range []*history.State{thread, caller} {
		if s != nil {
			found = append(found, fmt.Sprint(s.Turn, s.Began.UnixMicro(), s.Last.UnixMicro(), s.Closed, s.Partial, s.Stub))
		}
	}
	for call := range uint64(4) {
		if thread != nil {
			calls, same := thread.Equals(call, now.Add(-time.Minute))
			found = append(found, fmt.Sprintf("%d of %d, %d, %d", calls, thread.Calls(), same, call))
		}
	}
	return append(found, v.Saw()...)
}

func keysOf(term history.Term) [][]any {
	if len(term.Keys) == 0 {
		return [][]any{nil}
	}
	values := map[string][]any{"currency": {"EUR", "USD", "GBP"}, "path": {json.Number("1"), true, "1", "2"}}
	lists := [][]any{nil}
	for _, key := range term.Keys {
		var longer [][]any
		for _, list := range lists {
			for _, v := range values[key] {
				longer = append(longer, append(slices.Clone(list), v))
			}
		}
		lists = longer
	}
	return lists
}

// TestReference: a State answers each term as a list of all that has happened does.
func TestReference(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		terms := randomTerms(r)
		w := &traffic{terms: newTerms(t, terms...), now: start}
		for range 60 {
			w.happen(t, r)
			for _, term := range terms {
				for _, keys := range keysOf(term) {
					s := w.thread
					if term.Caller {
						s = w.caller
					}
					if s == nil {
						s = history.Begin(w.now)
					}
					if got, want := valueOf(w.terms, s, w.now, term, keys...), reference(w.events, term, w.now, keys); got != want {
						t.Fatalf("seed %d: %s%v: found %d, expected %d", seed, term, keys, got, want)
					}
				}
			}
		}
	}
}

// TestApplyAndUndoCancel: a call that is undone leaves no trace but its turns.
func TestApplyAndUndoCancel(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 2))
		terms := randomTerms(r)
		w := &traffic{terms: newTerms(t, terms...), now: start}
		for range 20 {
			w.happen(t, r)
		}
		a, err := w.terms.Adds("pay", arguments(t, `{"amount": 3, "currency": "EUR", "path": 1}`), secret, w.now)
		if err != nil {
			t.Fatal(err)
		}
		a.Labels, a.Equal = []string{"customer", "new"}, 2
		if w.thread == nil || w.caller == nil {
			continue
		}
		thread, caller := w.thread.Apply(a, false).Undo(a, false), w.caller.Apply(a, true).Undo(a, true)
		if thread.Turn != w.thread.Turn+2 || caller.Turn != w.caller.Turn+2 {
			t.Fatalf("seed %d: the turns are %d and %d", seed, thread.Turn, caller.Turn)
		}
		thread.Turn, caller.Turn = w.thread.Turn, w.caller.Turn
		was, is := answers(terms, w.terms, w.thread, w.caller, w.now), answers(terms, w.terms, thread, caller, w.now)
		was[0], was[1], is[0], is[1] = "", "", "", "" // when the last call was
		if !slices.Equal(was, is) {
			t.Fatalf("seed %d:\n%q\n%q", seed, was, is)
		}
	}
}

// fold applies records to both states.
func fold(t *testing.T, thread, caller *history.State, records []record) (_, _ *history.State) {
	for _, r := range records {
		a, err := history.ReadAdds(r.texts)
		if err != nil {
			t.Fatal(err)
		}
		a.Call = r.call
		if r.turn > 0 {
			thread = thread.Fold(r.turn, a, r.undo, false)
		}
		if r.caller > 0 {
			caller = caller.Fold(r.caller, a, r.undo, true)
		}
	}
	return thread, caller
}

// stored is a state that was written and read again.
func stored(t *testing.T, s *history.State) *history.State {
	if s == nil {
		return nil
	}
	b := s.Encode()
	again, err := history.DecodeState(b)
	if err != nil || !reflect.DeepEqual(again.Encode(), b) {
		t.Fatalf("%x: %v", b, err)
	}
	return again
}

// TestFold: the records of the log give the states, from any state in between on, also where they come in another order and
// more than once.
func TestFold(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 3))
		terms := randomTerms(r)
		w := &traffic{terms: newTerms(t, terms...), now: start}
		var thread, caller *history.State // some time before
		at, of := 0, r.IntN(40)
		for i := range 40 {
			if i == of {
				thread, caller, at = stored(t, w.thread), stored(t, w.caller), len(w.log)
			}
			w.happen(t, r)
		}
		want := answers(terms, w.terms, w.thread, w.caller, w.now)
		check := func(name string, thread, caller *history.State) {
			t.Helper()
			if got := answers(terms, w.terms, thread.Settle(true, w.now), caller.Settle(true, w.now), w.now); !slices.Equal(got, want) {
				t.Fatalf("seed %d, %s:\nfound    %q\nexpected %q", seed, name, got, want)
			}
		}
		all, allCaller := fold(t, nil, nil, w.log)
		check("whole", all, allCaller)
		all, allCaller = fold(t, all, allCaller, w.log)
		check("twice", all, allCaller)
		half, halfCaller := fold(t, nil, nil, w.log[:at])
		half, halfCaller = fold(t, stored(t, half), stored(t, halfCaller), w.log[at:])
		check("in two pieces", half, halfCaller)
		some := at - r.IntN(at+1) // records of which the snapshot has the turns already
		from, fromCaller := fold(t, thread, caller, w.log[some:])
		check("with a snapshot", from, fromCaller)
		// Those that are written at the same time have no order but that an undone call was added before.
		swapped := slices.Clone(w.log)
		for i := 1; i < len(swapped); i += 2 {
			if !swapped[i].undo {
				swapped[i-1], swapped[i] = swapped[i], swapped[i-1]
			}
		}
		other, otherCaller := fold(t, nil, nil, swapped)
		for _, s := range []*history.State{other, otherCaller} {
			stored(t, s)
		}
		check("in another order", other, otherCaller)
	}
}

func TestSettle(t *testing.T) {
	terms := newTerms(t, pays)
	first := (*history.State)(nil).Apply(addsOf(t, terms, "pay", `{}`, start), false)
	at := func(i int) history.Adds {
		return addsOf(t, terms, "pay", `{}`, start.Add(time.Duration(i)*time.Second))
	}
	var begun *history.State
	begun = begun.Fold(first.Turn, at(0), false, false).Fold(first.Turn+3, at(3), false, false)
	if n := valueOf(terms, begun, start, pays); n != -1 {
		t.Errorf("a state without two of its turns: %d", n)
	}
	if n := valueOf(terms, begun.Settle(true, start), start, pays); n != 2 {
		t.Errorf("turns that were in no record of a whole log: %d", n)
	}
	if n := valueOf(terms, begun.Settle(false, start), start, pays); n != -1 {
		t.Errorf("turns that were in no record of a log that is not whole: %d", n)
	}
	filled := begun.Fold(first.Turn+2, at(2), false, false).Fold(first.Turn+1, at(1), false, false)
	if n := valueOf(terms, filled, start, pays); n != 4 || filled.Settle(false, start) != filled {
		t.Errorf("the turns came later: %d", n)
	}
	middle := (*history.State)(nil).Fold(first.Turn+7, at(7), false, false)
	if n := valueOf(terms, middle.Settle(false, start), start, pays); n != -1 {
		t.Errorf("a state whose beginning is not there: %d", n)
	}
	// Of a thread that had expired before, what was kept in between is not in the new life.
	again := start.Add(40 * 24 * time.Hour)
	new := (*history.State)(nil).Apply(addsOf(t, terms, "pay", `{}`, again), false)
	folded := first.Aged(again, 7*24*time.Hour, 30*24*time.Hour).Fold(new.Turn, addsOf(t, terms, "pay", `{}`, again), false, false)
	if n := valueOf(terms, folded.Settle(false, again), again, pays); n != 1 {
		t.Errorf("a thread that began anew: %d", n)
	}
}

func FuzzReadAdds(f *testing.F) {
	terms := []history.Term{pays, paid, anyHour, callers, {Tool: `q"'é\`, Keys: []string{"a", "b"}}}
	all := newTerms(f, terms...)
	for _, tool := range []string{"pay", "read", `q"'é\`} {
		a := addsOf(f, all, tool, `{"amount": 10.5, "currency": "EUR", "a": 1, "b": true}`, start)
		a.Labels, a.Equal = []string{"untrusted"}, 7
		a.Begins(time.Hour)
		f.Add(strings.Join(a.Texts(), "\n"))
	}
	f.Add("at:2026-11-28T12:00:00Z\nthread.sum('a','b')=?\nthread.results('a')=1")
	f.Add("at:2026-11-28T12:00:00Z\nresult:00000000000000a1=ffffffffffffffff")
	f.Fuzz(func(t *testing.T, text string) {
		a, err := history.ReadAdds(strings.Split(text, "\n"))
		if err != nil {
			return
		}
		texts := a.Texts()
		again, err := history.ReadAdds(texts)
		if err != nil || !slices.Equal(again.Texts(), texts) {
			t.Fatalf("%q is read as %q, %v", texts, again.Texts(), err)
		}
		var s *history.State
		s = s.Apply(a, false)
		if _, err := history.DecodeState(s.Encode()); err != nil {
			t.Fatal(err)
		}
	})
}

// TestEquals: equal calls are counted in the last of the thread, and equal results on end; what is undone is not.
func TestEquals(t *testing.T) {
	at := func(i int) time.Time { return start.Add(time.Duration(i) * time.Second) }
	call := func(i int, digest uint64) history.Adds { return history.Adds{At: at(i), Equal: digest} }
	result := func(i int, digest, result uint64) history.Adds {
		return history.Adds{At: at(i), Equal: digest, Result: result}
	}
	var s *history.State
	expect := func(digest uint64, since, calls, same int) {
		t.Helper()
		if c, r := s.Equals(digest, at(since)); c != calls || r != same {
			t.Errorf("the call %d: %d calls and %d equal results, expected %d and %d", digest, c, r, calls, same)
		}
	}
	for i, a := range []history.Adds{call(0, 1), result(1, 1, 5), call(2, 2), result(3, 2, 5), call(4, 1), result(5, 1, 6), call(6, 1), result(7, 1, 6)} {
		if s = s.Apply(a, false); i == 0 {
			expect(1, 0, 1, 0)
		}
	}
	expect(1, 0, 3, 2)
	expect(1, 5, 1, 2)
	expect(1, 6, 1, 1)
	expect(2, 0, 1, 1)
	expect(3, 0, 0, 0)
	s = s.Apply(call(8, 1), false).Undo(call(8, 1), false)
	expect(1, 0, 3, 2)
	if s.Calls() != 4 {
		t.Errorf("%d calls, expected 4", s.Calls())
	}
	for i := range history.MaxEqual {
		s = s.Apply(call(9+i, 9), false).Apply(result(9+i, 9, 9), false)
	}
	s = stored(t, s)
	expect(1, 0, 0, 0)
	expect(9, 0, history.MaxEqual, history.MaxEqual)
	if s.Calls() != 4+history.MaxEqual {
		t.Errorf("%d calls, expected %d", s.Calls(), 4+history.MaxEqual)
	}
	if s = s.Aged(at(1<<20), time.Hour, time.Hour); s != nil {
		t.Error("counted calls keep a thread that is over")
	}
}

// TestBegun: threads that a caller begins are counted by the steps of a window.
func TestBegun(t *testing.T) {
	var a history.Adds
	a.At = start
	a.Begins(time.Hour)
	s := (*history.State)(nil).Apply(a, true).Apply(a, true)
	for _, c := range []struct {
		after  time.Duration
		window time.Duration
		want   int64
	}{{0, time.Hour, 2}, {time.Hour, time.Hour, 2}, {time.Hour + time.Minute, time.Hour, 0}, {0, time.Minute, 0}} {
		if n := s.Begun(c.window, start.Add(c.after)); n != c.want {
			t.Errorf("%s later, in %s: %d threads, expected %d", c.after, c.window, n, c.want)
		}
	}
	if n := s.Undo(a, true).Begun(time.Hour, start); n != 1 {
		t.Errorf("%d threads where one was undone", n)
	}
}

// TestAddsOfAllTerms: what a call adds to as many terms as there may be, and to the threads of its caller, is read back.
func TestAddsOfAllTerms(t *testing.T) {
	all := make([]history.Term, history.MaxTerms)
	for i := range all {
		all[i] = history.Term{Tool: "pay" + strings.Repeat("*", i)}
	}
	terms, err := history.NewTerms(all, func(string, string) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	a, err := terms.Adds("pay", nil, nil, start)
	if err != nil {
		t.Fatal(err)
	}
	a.Begins(time.Hour)
	if read, err := history.ReadAdds(a.Texts()); err != nil || !slices.Equal(read.Texts(), a.Texts()) {
		t.Errorf("found %d texts, expected %d: %v", len(read.Texts()), len(a.Texts()), err)
	}
}

func TestSecret(t *testing.T) {
	if _, err := history.NewSecret(make([]byte, history.MinSecret-1)); err == nil {
		t.Error("a short secret is taken")
	}
	other, err := history.NewSecret([]byte(strings.Repeat("o", history.MinSecret)))
	if err != nil {
		t.Fatal(err)
	}
	terms := newTerms(t, byPath)
	a := addsOf(t, terms, "read", `{"path": "a"}`, start)
	if b, err := terms.Adds("read", map[string]any{"path": "a"}, other, start); err != nil || slices.Equal(a.Texts(), b.Texts()) {
		t.Errorf("the digests of two secrets are the same: %q, %v", a.Texts(), err)
	}
}

func TestKeepingIsStored(t *testing.T) {
	terms := newTerms(t, pays, anyHour)
	k := (*history.Keeping)(nil).With("a", terms, start).With("b", terms, start.Add(time.Second)).Losing(start.Add(-time.Hour))
	text, err := json.Marshal(k)
	if err != nil {
		t.Fatal(err)
	}
	again := new(history.Keeping)
	if err := json.Unmarshal(text, again); err != nil {
		t.Fatal(err)
	}
	if since, ok := again.Since(pays.ID()); !ok || !since.Equal(start.Add(time.Second)) || !again.Lost.Equal(k.Lost) {
		t.Errorf("%s: %s, %v", text, since, ok)
	}
}

// TestWhoOwesWhatTheyHaveWritten: after a loss each gateway puts back what it has written, unless the store has that for certain.
func TestWhoOwesWhatTheyHaveWritten(t *testing.T) {
	terms := newTerms(t, pays)
	keeps := func(gateways ...string) (k *history.Keeping) {
		for _, g := range gateways {
			k = k.With(g, terms, start)
		}
		return k.In("before")
	}
	later := start.Add(time.Hour)
	attempt := func(gateway string, agreed bool) history.Attempt {
		return history.Attempt{Gateway: gateway, Name: "1", Instance: "i", Agreed: agreed}
	}
	lost := keeps("a", "b").Lose(nil, attempt("a", false), later)
	for _, row := range []struct {
		name      string
		is, known *history.Keeping
		agreed    bool
		owed      []string
		lost      bool
	}{
		{name: "an old state", is: keeps("a", "b"), known: keeps("a", "b"), owed: []string{"a", "b"}},
		{name: "nothing is left", known: keeps("a", "b"), owed: []string{"a", "b"}},
		{name: "nothing was kept"},
		{name: "one joined after the old state", is: keeps("a"), known: keeps("a", "b"), owed: []string{"a", "b"}},
		{name: "one had ended before", is: keeps("a", "b").Without("b", start), known: keeps("a", "b").Without("b", start), owed: []string{"a"}},
		{name: "and has come back since", is: keeps("a", "b").Without("b", start), known: keeps("a", "b"), owed: []string{"a", "b"}},
		{name: "and has ended again since", is: keeps("a", "b").Without("b", start), known: keeps("a", "b").Without("b", later), owed: []string{"a", "b"}},
		{name: "one has ended, and nothing is left", known: keeps("a", "b").Without("b", start), owed: []string{"a", "b"}},
		{name: "another has begun to put back", is: lost, known: keeps("a", "b", "c"), owed: []string{"a", "b", "c"}},
		{name: "it owes, and the others go on", is: lost.In("next"), known: keeps("a", "b"), agreed: true, owed: []string{"a", "b"}},
		{name: "the others have begun anew", is: keeps("b"), known: keeps("a"), agreed: true, lost: true},
		{name: "a key of its own", is: &history.Keeping{Key: "k"}, known: &history.Keeping{Key: "l"}, owed: []string{"a"}, lost: true},
	} {
		next := row.is.Lose(row.known, attempt("a", row.agreed), later)
		if next == nil {
			if row.is != nil || row.known != nil {
				t.Errorf("%s: nothing is kept", row.name)
			}
			continue
		}
		if owed := slices.Sorted(maps.Keys(next.Owed)); !slices.Equal(owed, row.owed) || !next.Lost.IsZero() != row.lost {
			t.Errorf("%s: owed by %q, lost %s", row.name, owed, next.Lost)
		}
		for i, gateway := range row.owed {
			if !next.Owes(later, time.Hour) {
				t.Errorf("%s: it is whole without %q", row.name, row.owed[i:])
			}
			if gateway != "a" {
				next = next.Lose(nil, attempt(gateway, row.agreed), later)
			}
			again := attempt(gateway, row.agreed)
			again.Name = "0"
			if _, ok := next.Done(again, time.Time{}); ok {
				t.Errorf("%s: an attempt of before the loss counts for %s", row.name, gateway)
			}
			var ok bool
			if next, ok = next.Done(attempt(gateway, row.agreed), time.Time{}); !ok {
				t.Errorf("%s: %s is not done", row.name, gateway)
			}
		}
		if next.Owes(later, time.Hour) || !next.Lost.IsZero() != row.lost {
			t.Errorf("%s: it is not whole", row.name)
		}
	}
}

// TestAnEarlierTurnFitsIn: what was changed while turns of before a loss were missing, and those turns, come to the same.
func TestAnEarlierTurnFitsIn(t *testing.T) {
	terms := newTerms(t, pays)
	add := func(at time.Time) history.Adds {
		a, err := terms.Adds("pay", nil, nil, at)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	var early *history.State
	early = early.Apply(add(start), false)
	loss := start.Add(time.Hour)
	keeping := (*history.Keeping)(nil).With("a", terms, start.Add(-time.Hour)).In("e").Lose(nil, history.Attempt{Gateway: "a"}, loss)
	value := func(s *history.State) (int64, error) {
		return history.NewView(terms, nil, history.Past{Thread: s, Keeping: keeping, Now: loss}, nil, history.Adds{}).Value(pays.ID())
	}
	for name, s := range map[string]*history.State{"absent": history.Begin(loss), "old": early} {
		lost := early.Apply(add(start.Add(time.Minute)), false)
		s = s.Missing(loss)
		if _, err := value(s); !errors.Is(err, history.ErrUnknown) {
			t.Errorf("%s: known before it is put back: %v", name, err)
		}
		s = s.Apply(add(loss), false)
		s, err := history.DecodeState(s.Encode())
		if err != nil {
			t.Fatal(err)
		}
		if s.Missing(loss) != s || s.Turn <= lost.Turn {
			t.Errorf("%s: turn %d, and %d before the loss", name, s.Turn, lost.Turn)
		}
		if _, err := value(s); !errors.Is(err, history.ErrUnknown) {
			t.Errorf("%s: known before it is put back: %v", name, err)
		}
		for range 2 {
			s = s.Fold(lost.Turn, add(start.Add(time.Minute)), false, false).Fold(early.Turn, add(start), false, false)
		}
		if n, err := value(s.Settle(true, loss)); n != 3 || err != nil {
			t.Errorf("%s: %d, %v", name, n, err)
		}
	}
}

func BenchmarkApply(b *testing.B) {
	var all []history.Term
	for i := range 16 {
		all = append(all, history.Term{Tool: "pay", Keys: []string{fmt.Sprintf("k%02d", i)}})
	}
	terms := newTerms(b, all...)
	args := map[string]any{}
	for i := range 16 {
		args[fmt.Sprintf("k%02d", i)] = "v"
	}
	a, err := terms.Adds("pay", args, secret, start)
	if err != nil {
		b.Fatal(err)
	}
	s := (*history.State)(nil).Apply(a, false)
	b.ReportAllocs()
	for b.Loop() {
		s = s.Apply(a, false)
	}
}

// TestTurnsThatMeetTheClock: a change a microsecond behind the first one is not taken for the first one, also where the log has it
// before.
func TestTurnsThatMeetTheClock(t *testing.T) {
	first, second := history.Adds{At: time.UnixMicro(1_700_000_000_000_000), Labels: []string{"a"}}, history.Adds{At: time.UnixMicro(1_700_000_000_000_001), Labels: []string{"b"}}
	one := (*history.State)(nil).Apply(first, false)
	two := one.Apply(second, false)
	folded := (*history.State)(nil).Fold(two.Turn, second, false, false).Fold(one.Turn, first, false, false).Settle(true, second.At)
	if n := len(folded.Labels()); n != 2 || folded.Turn != two.Turn {
		t.Errorf("found %d labels at turn %d, expected 2 at turn %d", n, folded.Turn, two.Turn)
	}
}
