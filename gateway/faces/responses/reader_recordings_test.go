package responses

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/sse"
	"github.com/callgate/callgate/internal/testkit/corpora"
	"github.com/callgate/callgate/upstream"
)

const corpus = "face_recordings"

// strict allows nothing.
func strict() *upstream.Rules { return &upstream.Rules{} }

// allowing is everything that a switch allows.
var allowing = &upstream.Rules{Responses: upstream.ResponsesRules{
	UnknownItems: upstream.Pass, Async: true, ProgrammaticCalls: true, MCPServers: []string{"any"},
	HostedTools: []string{"web_search", "file_search", "code_interpreter", "image_generation", "tool_search", "compaction", "shell"},
}}

type recording struct {
	File, Style, ID string
	Expected        []expected `json:"expected_calls"`
	Calls           []expected
	Response        json.RawMessage
}

type expected struct {
	ID, Name, Namespace, Kind string
	Arguments, Input          *string
}

func (e expected) String() string {
	text := e.Arguments
	if text == nil {
		text = e.Input
	}
	return fmt.Sprintf("%s %s %s %s %s", e.Kind, e.ID, e.Namespace, e.Name, *text)
}

// read reads a stream, and checks as the engine does that its items are allowed, and that nothing of a call is told of but
// that it begins and ends.
func read(from io.Reader, rules *upstream.Rules) (*reader, error) {
	scanner := sse.Reader{Source: from, MaxBytes: 4 << 20, Last: func(data []byte) bool { return string(data) == "[DONE]" }}
	r := newReader(rules)
	fed := map[*turns.Part]int{}
	for {
		name, data, err := scanner.Next()
		if errors.Is(err, sse.ErrEnd) {
			return ended(r)
		}
		if err != nil {
			return nil, err
		}
		deltas, err := r.Event(name, data)
		if err != nil {
			return nil, err
		}
		for i := range deltas {
			switch d := &deltas[i]; {
			case d.Part == nil:
			case d.Is == turns.Start && !isAllowed(rules, d.Part):
				return nil, errors.New("an item that is not allowed")
			case d.Part.Kind == turns.Call && d.Is != turns.Start && d.Is != turns.Stop:
				return nil, fmt.Errorf("an event of a call is told of: %d", d.Is)
			case d.Is == turns.Grown && d.From != fed[d.Part]:
				return nil, errors.New("a text that was told of has changed")
			case d.Is == turns.Grown:
				fed[d.Part] = len(d.Part.Text)
			}
		}
	}
}

func ended(r *reader) (*reader, error) {
	if err := r.End(); err != nil {
		return nil, err
	}
	for _, p := range r.answer.Parts {
		if !isAllowed(r.rules, p) {
			return nil, errors.New("an item that is not allowed")
		}
	}
	return r, nil
}

// isAllowed leaves the servers of requests for approval aside.
func isAllowed(rules *upstream.Rules, p *turns.Part) bool {
	if p.Allowed == nil || p.Kind == turns.Ask {
		return true
	}
	found, _ := p.Allowed(rules, p)
	return found == ""
}

func readWhole(body []byte, rules *upstream.Rules) (*reader, error) {
	r := newReader(rules)
	if err := r.Whole(body); err != nil {
		return nil, err
	}
	return ended(r)
}

// callsOf are the calls that the recordings list: functions and custom tools.
func callsOf(r *reader) []string {
	var all []string
	for _, it := range r.items {
		if c := &it.call; it.Type == "function_call" || it.Type == "custom_tool_call" {
			all = append(all, fmt.Sprintf("%s %s %s %s %s", it.Type, c.id, c.namespace, c.name, c.payload))
		}
	}
	return all
}

// describe is a reply in short, without the places that whole and streamed replies do not
// share.
func describe(r *reader) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s %d\n", r.answer.Reason, r.reply.Head.Get(memberDetails), r.reply.Usage.Tokens)
	for _, it := range r.items {
		fmt.Fprintf(&b, "%s %d %s %+v %s\n", it.Type, it.Kind, it.phase, it.call, it.call.payload)
		for _, part := range it.parts {
			fmt.Fprintf(&b, "  %v %s\n", part.refuses(), part.Text)
		}
	}
	return b.String()
}

// refusedRecordings are the recordings that are refused, by the beginnings of their names, and
// why. All were made or shortened by their source.
var refusedRecordings = map[string]string{
	"370_": "deltas were left out: the text differs from its end",
	"376_": "deltas were left out: the text differs from its end",
	"424_": "output_item.done without output_index (RS-47)",
	"362_": "a failure of the provider (RS-49)",
	"425_": "a failure of the provider (RS-49)",
	"427_": "a failure of the provider (RS-49)",
}

func TestRecordedStreams(t *testing.T) {
	if !corpora.Whole(corpus) {
		t.Skip("left out: the corpus " + corpus + " is not here")
	}
	count, found := 0, 0
	for _, r := range corpora.Lines[recording](t, corpora.Path(t, corpus, "sse_streams", "index.jsonl")) {
		if r.Style != "openai-responses" {
			continue
		}
		count++
		b, err := os.ReadFile(corpora.Path(t, corpus, "sse_streams", r.File))
		if err != nil {
			t.Fatal(err)
		}
		whole, err := read(bytes.NewReader(b), allowing)
		if reason, refused := refusedRecordings[r.File[:4]]; refused {
			if err == nil {
				t.Errorf("%s is read; expected a refusal: %s", r.File, reason)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", r.File, cause(err))
			continue
		}
		var want []string
		for _, c := range r.Expected {
			want = append(want, c.String())
		}
		if got := callsOf(whole); !slices.Equal(got, want) {
			t.Errorf("%s: found %q; expected %q", r.File, got, want)
		}
		found += len(want)
		random := rand.New(rand.NewPCG(1, uint64(len(b))))
		for how, from := range map[string]io.Reader{
			"byte by byte": iotest.OneByteReader(bytes.NewReader(b)),
			"at random":    &randomReader{bytes.NewReader(b), random},
		} {
			if cut, err := read(from, allowing); err != nil || describe(cut) != describe(whole) {
				t.Errorf("%s, cut %s: %v", r.File, how, cause(err))
			}
		}
		if streamed := inTerminal(t, b); streamed != nil {
			single, err := readWhole(streamed, allowing)
			if err != nil {
				t.Errorf("%s: the terminal response alone: %v", r.File, cause(err))
			} else if len(single.items) > 0 && describe(single) != describe(whole) {
				t.Errorf("%s: whole\n%s\nstreamed\n%s", r.File, describe(single), describe(whole))
			}
		}
	}
	if count != 230 || found < 80 {
		t.Errorf("%d recordings with %d calls", count, found)
	}
}

// inTerminal is the response of the terminal event.
func inTerminal(t *testing.T, b []byte) []byte {
	for line := range strings.SplitSeq(string(b), "\n") {
		data, ok := strings.CutPrefix(line, "data:")
		if !ok || !strings.Contains(data, `response.completed"`) && !strings.Contains(data, `response.incomplete"`) {
			continue
		}
		var e struct {
			Type     string
			Response json.RawMessage
		}
		if json.Unmarshal([]byte(data), &e) == nil && (e.Type == "response.completed" || e.Type == "response.incomplete") {
			var status struct{ Status string }
			if json.Unmarshal(e.Response, &status) == nil && status.Status != "" {
				return e.Response
			}
		}
	}
	return nil
}

type randomReader struct {
	from   io.Reader
	random *rand.Rand
}

func (r *randomReader) Read(b []byte) (int, error) {
	return r.from.Read(b[:min(len(b), 1+r.random.IntN(700))])
}

// cause is what an operator reads of an error.
func cause(err error) error {
	if inner := errors.Unwrap(err); inner != nil {
		return inner
	}
	return err
}

func TestRecordedReplies(t *testing.T) {
	if !corpora.Whole(corpus) {
		t.Skip("left out: the corpus " + corpus + " is not here")
	}
	count := 0
	for _, r := range corpora.Lines[recording](t, corpora.Path(t, corpus, "exchanges.jsonl")) {
		if r.Style != "openai-responses" {
			continue
		}
		count++
		reply, err := readWhole(r.Response, allowing)
		if err != nil {
			t.Errorf("%s: %v", r.ID, cause(err))
			continue
		}
		var want []string
		for _, c := range r.Calls {
			if c.Kind == "function_call" || c.Kind == "custom_tool_call" {
				want = append(want, c.String())
			}
		}
		if got := callsOf(reply); !slices.Equal(got, want) {
			t.Errorf("%s: found %q; expected %q", r.ID, got, want)
		}
	}
	if count != 465 {
		t.Errorf("%d recordings", count)
	}
}

func seeded(n int) *rand.Rand { return rand.New(rand.NewPCG(2, uint64(n))) }
