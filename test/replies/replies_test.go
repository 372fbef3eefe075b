package replies_test

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/callgate/callgate/app"
	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/testkit/budgettest"
	"github.com/callgate/callgate/internal/testkit/corpora"
	"github.com/callgate/callgate/internal/testkit/facetest"
	"github.com/callgate/callgate/test/replies/invented"
	"github.com/callgate/callgate/tool"
	"github.com/callgate/callgate/upstream"
)

var update = flag.Bool("update", false, "write what comes out of the cases into their files")

func TestMain(m *testing.M) { facetest.Main(m) }

// wire is an API: how a request and a reply are written in it, and how an answer is read.
type wire interface {
	path() string
	request(c *testCase) string // without its end, as an object
	whole(r *reply) string
	forms() []form
	events(r *reply, f form) []string
	read(body string, streamed bool) (answer, error)
}

// api is a wire, and the kinds of parts that it can say.
type api struct {
	name string
	wire
	speaks upstream.Wire
	says   []string
}

// apis are the APIs of the table, and wires those that the gateway serves: a program may be built without a face.
var apis = []api{
	{"chat", chatWire{}, upstream.ChatWire, []string{"text", "thought", "refusal", "cite", "call"}},
	{"messages", messagesWire{}, upstream.MessagesWire, []string{"text", "thought", "cite", "hosted", "call"}},
	{"responses", responsesWire{}, upstream.ResponsesWire, []string{"text", "thought", "refusal", "cite", "hosted", "call"}},
	{"invented", inventedWire{}, invented.Spec.Wire, typesOf(invented.Spec.Rows)},
}

var wires = slices.DeleteFunc(slices.Clone(apis), func(a api) bool { return !serves(a.wire) })

// serves reports whether the gateway has the face of an API.
func serves(w wire) bool {
	if w == (inventedWire{}) {
		return true
	}
	i := slices.IndexFunc(apis, func(a api) bool { return a.wire == w })
	return app.Speaks(apis[i].speaks)
}

func typesOf(rows []*turns.Row) (types []string) {
	for _, row := range rows {
		types = append(types, row.Type)
	}
	return types
}

// form is how a reply is cut into a stream: its texts into pieces of so many bytes, or none at a place of
// the wire that states it whole.
type form struct {
	size  int
	place string
}

func (f form) String() string { return fmt.Sprintf("streamed in pieces of %d%s", f.size, f.place) }

// answer is what the application gets.
type answer struct {
	status                 int
	code                   string // of a refusal
	text, thought, refusal string
	calls, cites, others   []string
	end                    string
	done                   bool
	begun                  bool // as a stream
	ran                    []string
	asked                  int
	told                   string // the codes that the model read last
	spent                  []string
}

// String is the answer on one line.
func (a *answer) String() string {
	var b strings.Builder
	add := func(format string, args ...any) { fmt.Fprintf(&b, " "+format, args...) }
	switch {
	case a.code != "" && a.begun:
		add("refused %s", a.code)
	case a.code != "":
		add("refused %s %d", a.code, a.status)
	case !a.done:
		add("no end")
	default:
		add("passes")
	}
	for _, shown := range [][2]string{{"thought", a.thought}, {"text", a.text}, {"refusal", a.refusal}} {
		if shown[1] != "" {
			add("%s %s", shown[0], strconv.Quote(shown[1]))
		}
	}
	for _, cite := range a.cites {
		add("cite %s", strconv.Quote(cite))
	}
	for _, other := range a.others {
		add("%s", other)
	}
	for _, call := range a.calls {
		add("call %s", call)
	}
	if a.code == "" {
		add("end %s", cmp.Or(a.end, "none"))
	}
	for _, ran := range a.ran {
		add("ran %s", ran)
	}
	if a.asked != 1 {
		add("asked %d", a.asked)
	}
	if a.told != "" {
		add("told %s", a.told)
	}
	for _, spent := range a.spent {
		add("%s", spent)
	}
	return strings.ReplaceAll(b.String()[1:], secret, "{secret}")
}

// known is a word of a wire as cases write it.
func known(word string, words map[string]string) string {
	if is := words[word]; is != "" || word == "" {
		return is
	}
	return "=" + word
}

// quoted is a text as JSON.
func quoted(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

// pieces cuts a text between characters.
func pieces(s string, most int) (all []string) {
	for len(s) > 0 {
		n := min(most, len(s))
		for n < len(s) && s[n]&0xC0 == 0x80 {
			n++
		}
		all, s = append(all, s[:n]), s[n:]
	}
	return all
}

// dataOf are the data of the events of a stream.
func dataOf(body string) (all []string) {
	for event := range strings.SplitSeq(strings.TrimSuffix(body, "\n\n"), "\n\n") {
		for line := range strings.SplitSeq(event, "\n") {
			if data, ok := strings.CutPrefix(line, "data: "); ok {
				all = append(all, data)
			}
		}
	}
	return all
}

// gate is a gateway with a scripted model, for one case.
type gate struct {
	*facetest.Fixture
	options turns.Options
	mu      sync.Mutex
	script  func(turn int, w http.ResponseWriter, r *http.Request)
	asked   []string
	ran     []string
	book    *budgettest.Book // of a case with a budget
}

// peopleFiles are a configuration in which people decide on calls of web.search.
var peopleFiles = map[string]string{
	"callgate.yaml":  "registry: {files: [tools.yaml]}\napprovals: approvals.yaml\n",
	"approvals.yaml": "rules: {one: {}}\nwait: 0s\n",
	"policy.csv":     "p, Analyst, *, time.now, , allow\np, Analyst, *, web.search, , ask:one\n",
	"tools.yaml": "tools:\n" +
		"  - {name: web.search, version: 1.0.0, description: Searches., kind: execute, effect: once, run: {type: demo}, input_schema: {type: object, properties: {query: {type: string}}}}\n" +
		"  - {name: time.now, version: 1.0.0, description: The time., kind: read, effect: read, run: {type: demo}, input_schema: {type: object}}\n",
}

func open(t *testing.T, c *testCase, url string) *gate {
	t.Helper()
	config := facetest.Vectors(t)
	if c.hooks != "" {
		config = hooked(t, c.hooks)
	}
	if c.people {
		config = facetest.Config(t, peopleFiles)
	}
	g := &gate{}
	g.Fixture = facetest.New(t, facetest.Options{Config: config, Engine: facetest.ToolFunc(func(task tool.Call) (tool.Result, error) {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.ran = append(g.ran, task.Tool+string(task.Arguments))
		return tool.Result{Body: []byte(`{"done":true}`), JSON: true}, nil
	})})
	client := upstream.NewClient(upstream.Options{ReadSecret: facetest.Secret})
	t.Cleanup(client.Close)
	var models []upstream.Definition
	for _, w := range wires {
		if !c.isOn(w.name, w.says) {
			continue
		}
		d := upstream.Defaults()
		d.Name, d.BaseURL, d.Retries = w.name, url, 0
		d.Models, d.Rules.Speaks = []upstream.Model{{ID: w.name}}, []upstream.Wire{w.speaks}
		d.Rules.MaxRepairs, d.Rules.DefaultOutputTokens = 0, 100
		for _, rule := range c.rules {
			if err := setRule(&d.Rules, rule); err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
		}
		models = append(models, d)
	}
	set, err := upstream.New(models)
	if err != nil {
		t.Fatalf("%s: %v", c.name, err)
	}
	g.options = turns.Options{Executor: g.Executor, Upstreams: func() *upstream.Set { return set }, Client: client, Heartbeat: c.beat}
	if c.budget > 0 {
		g.options.Budgets, g.book = budgettest.Open(t, budgettest.One(c.budget))
	}
	for _, face := range app.ModelFaces(g.options) {
		face.Mount(g.Server)
	}
	invented.Mount(g.options, g.Server)
	return g
}

// hooked is the configuration with a hook at texts, read once.
func hooked(t *testing.T, action string) *configs.Config {
	t.Helper()
	hookedOnce.Lock()
	defer hookedOnce.Unlock()
	if hookedConfigs[action] == nil {
		c, err := configs.Load(corpora.HookedConfig(t, `[{name: secrets, at: [text], patterns: [secrets], on_match: `+action+`}]`))
		if err != nil {
			t.Fatal(err)
		}
		hookedConfigs[action] = c
	}
	return hookedConfigs[action]
}

var (
	hookedOnce    sync.Mutex
	hookedConfigs = map[string]*configs.Config{}
)

// serve answers as the model.
func (g *gate) serve(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	g.mu.Lock()
	turn := len(g.asked)
	g.asked = append(g.asked, string(body))
	script := g.script
	g.mu.Unlock()
	script(turn, w, r)
}

// reporter is a test, or one of many drawn cases of it.
type reporter interface {
	Helper()
	Errorf(format string, values ...any)
}

// codes are refusals that a request tells the model of.
var codes = regexp.MustCompile(`\\*"error\\*":\{\\*"code\\*":\\*"(\w+)`)

// ask sends the request of a case, and returns the answer.
func (g *gate) ask(ctx context.Context, t reporter, c *testCase, w wire, streamed bool, script func(turn int, w http.ResponseWriter, r *http.Request)) (answer, *httptest.ResponseRecorder) {
	t.Helper()
	g.mu.Lock()
	g.script, g.asked, g.ran = script, nil, nil
	g.mu.Unlock()
	before := 0
	if g.book != nil {
		before = len(g.book.Words())
	}
	body := w.request(c) + "}"
	if streamed {
		body = w.request(c) + `,"stream":true}`
	}
	r := httptest.NewRequest(http.MethodPost, w.path(), strings.NewReader(body)).WithContext(ctx)
	r.Header.Set("Content-Type", "application/json")
	got := httptest.NewRecorder()
	g.ServeHTTP(got, r)
	begun := strings.HasPrefix(got.Header().Get("Content-Type"), "text/event-stream")
	a, err := w.read(got.Body.String(), begun)
	if err != nil {
		t.Errorf("%s: %v in %d %s", c.name, err, got.Code, got.Body)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	a.status, a.begun, a.asked = got.Code, begun, len(g.asked)
	a.ran = slices.Clone(g.ran)
	if g.book != nil {
		a.spent = g.book.Words()[before:]
	}
	if len(g.asked) > 1 {
		var told []string
		for _, m := range codes.FindAllStringSubmatch(g.asked[len(g.asked)-1], -1) {
			told = append(told, m[1])
		}
		a.told = strings.Join(told, ",")
	}
	return a, got
}

// settled are the records, once all of them are written.
func (g *gate) settled(t *testing.T) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := g.Executor.Kernel.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	return g.Journal.Lines()
}

// says is a model that makes the replies of a case.
func says(c *testCase, w wire, f form) func(turn int, to http.ResponseWriter, r *http.Request) {
	return func(turn int, to http.ResponseWriter, r *http.Request) {
		reply := &c.replies[min(turn, len(c.replies)-1)]
		streamed := r.Header.Get("Accept") == "text/event-stream"
		kind := "application/json"
		if streamed {
			kind = "text/event-stream"
		}
		switch {
		case reply.as["no_type"]:
			to.Header()["Content-Type"] = nil
		case reply.as["plain"]:
			to.Header().Set("Content-Type", "text/plain")
		default:
			to.Header().Set("Content-Type", kind)
		}
		if reply.as["mark"] {
			_, _ = io.WriteString(to, "\ufeff")
		}
		if !streamed {
			_, _ = io.WriteString(to, w.whole(reply))
			return
		}
		for _, event := range w.events(reply, f) {
			_, _ = io.WriteString(to, event)
			if f.size == 7 {
				to.(http.Flusher).Flush()
			}
		}
	}
}

// TestReplies runs the table.
func TestReplies(t *testing.T) {
	for _, f := range readFiles(t) {
		found := map[string][]string{}
		for _, c := range f.cases {
			found[c.name] = c.run(t)
			if !*update && !slices.Equal(found[c.name], c.want) {
				t.Errorf("%s: %s\nfound\n  %s\nexpected\n  %s", f.path, c.name, strings.Join(found[c.name], "\n  "), strings.Join(c.want, "\n  "))
			}
		}
		if *update {
			f.write(t, found)
		}
	}
}

// run runs a case on each wire, and returns what comes out.
func (c *testCase) run(t *testing.T) []string {
	var g *gate
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { g.serve(w, r) }))
	defer model.Close()
	g = open(t, c, model.URL)
	var cells []cell
	for _, w := range apis {
		if !c.isOn(w.name, w.says) {
			continue
		}
		if !serves(w.wire) { // the file stays as it is
			for _, form := range []string{"whole", "stream"} {
				cells = append(cells, cell{w.name, form, c.wanted(w.name, form)})
			}
			continue
		}
		whole, body := g.ask(t.Context(), t, c, w, false, says(c, w, form{}))
		c.checkShown(t, w.name+", whole", &whole, body)
		cells = append(cells, cell{w.name, "whole", whole.String()})
		var all []*answer
		var finest *answer // of texts in pieces of one byte
		for _, f := range w.forms() {
			streamed, body := g.ask(t.Context(), t, c, w, true, says(c, w, f))
			c.checkShown(t, w.name+", "+f.String(), &streamed, body)
			c.checkAgrees(t, w.name+", "+f.String(), &whole, &streamed)
			if f.size == 1 {
				finest = &streamed
				cells = append(cells, cell{w.name, "stream", streamed.String()})
			}
			all = append(all, &streamed)
		}
		for _, streamed := range all {
			if streamed.code != finest.code || streamed.code == "" && streamed.String() != finest.String() || !strings.HasPrefix(finest.text, streamed.text) || !strings.HasPrefix(finest.thought, streamed.thought) {
				t.Errorf("%s: %s: found %s, and in pieces of one byte %s", c.name, w.name, streamed, finest)
			}
		}
	}
	return lines(cells)
}

// wanted is what the file says to come out on a wire in a form.
func (c *testCase) wanted(wire, form string) string {
	for _, want := range c.want {
		labels, line, _ := strings.Cut(want, ": ")
		for label := range strings.FieldsSeq(labels) {
			if label == "all" || label == form || label == wire || label == wire+"."+form {
				return line
			}
		}
	}
	return ""
}

// checkShown fails where a byte of what may not be shown is.
func (c *testCase) checkShown(t reporter, how string, a *answer, got *httptest.ResponseRecorder) {
	t.Helper()
	body := got.Body.String()
	if strings.Contains(body, "HIDDEN") || a.code != "" && (strings.Contains(body, "SECRET") || len(a.calls) > 0) || c.hooks != "" && strings.Contains(body, secret[10:20]) {
		t.Errorf("%s: %s: shown is %s", c.name, how, body)
	}
	if final := got.Code == http.StatusUnprocessableEntity || got.Code == http.StatusForbidden; final && got.Header().Get("X-Should-Retry") != "false" {
		t.Errorf("%s: %s: a client would send it again: %d %v", c.name, how, got.Code, got.Header())
	}
	if a.code != "" != !a.done || a.begun && got.Code != http.StatusOK {
		t.Errorf("%s: %s: no end, or two: %d %s", c.name, how, got.Code, body)
	}
}

// checkAgrees fails where a stream has another verdict than the same reply whole, or shows anything else.
func (c *testCase) checkAgrees(t reporter, how string, whole, streamed *answer) {
	t.Helper()
	if whole.asked > 1 || c.differs {
		return // a stream shows the texts of all turns, and no turn is repaired behind them
	}
	same := whole.code == streamed.code && slices.Equal(whole.ran, streamed.ran)
	if whole.code == "" {
		w, s := *whole, *streamed
		if c.has("refusals=message") && strings.HasSuffix(s.text, w.text) {
			w.text = s.text // what a stream has shown stays in front of the message
		}
		same = same && w.String() == s.String()
	} else if !streamed.begun {
		same = same && whole.status == streamed.status
	}
	if !same {
		t.Errorf("%s: %s: found %s, and whole %s", c.name, how, streamed, whole)
	}
}

// cell is what comes out on a wire in a form.
type cell struct{ wire, form, line string }

// lines are the cells, those with one line together.
func lines(cells []cell) (all []string) {
	of := func(match func(cell) bool, line string) bool {
		return !slices.ContainsFunc(cells, func(c cell) bool { return match(c) && c.line != line })
	}
	for i, first := range cells {
		if slices.ContainsFunc(cells[:i], func(c cell) bool { return c.line == first.line }) {
			continue
		}
		label := ""
		switch {
		case of(func(cell) bool { return true }, first.line):
			label = " all"
		default:
			left := []string{}
			for _, form := range []string{"whole", "stream"} {
				if of(func(c cell) bool { return c.form == form }, first.line) {
					label += " " + form
					left = append(left, form)
				}
			}
			for _, w := range apis {
				has := func(c cell) bool { return c.wire == w.name && !slices.Contains(left, c.form) }
				for _, c := range cells {
					if !has(c) || c.line != first.line {
						continue
					}
					if of(func(c cell) bool { return c.wire == w.name }, first.line) && len(left) == 0 {
						label += " " + w.name
						break
					}
					label += " " + w.name + "." + c.form
				}
			}
		}
		all = append(all, label[1:]+": "+first.line)
	}
	return all
}
