package responses_test

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

	"github.com/callgate/callgate/internal/sse"
	"github.com/callgate/callgate/internal/testkit/corpora"
	"github.com/callgate/callgate/upstream/responses"
)

const corpus = "face_recordings"

// allowing is everything that a switch allows.
var allowing = responses.Options{Unknown: true, Async: true, Hosted: map[string]bool{
	"web_search_call": true, "file_search_call": true, "code_interpreter_call": true, "image_generation_call": true, "mcp_list_tools": true,
	"mcp_call": true, "tool_search_call": true, "tool_search_output": true, "program": true, "program_output": true, "compaction": true,
	"shell_call": true, "shell_call_output": true,
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

// read reads a stream, and checks that nothing of a call is passed on.
func read(from io.Reader, o responses.Options) (*responses.Reply, error) {
	reader := sse.Reader{Source: from, MaxBytes: 4 << 20, Last: func(data []byte) bool { return string(data) == "[DONE]" }}
	stream := responses.NewStream(o)
	fed := map[*responses.Part]int{}
	for {
		name, data, err := reader.Next()
		if errors.Is(err, sse.ErrEnd) {
			return stream.Close()
		}
		if err != nil {
			return nil, err
		}
		event, err := stream.Add(name, data)
		if err != nil {
			return nil, err
		}
		if event.Item == nil {
			continue
		}
		isCall := event.Item.Class == responses.Call || event.Item.Class == responses.Approval
		if isCall && event.Kind != responses.Added && event.Kind != responses.Ended && event.Kind != responses.Nothing {
			return nil, fmt.Errorf("an event of a call is passed on: %d", event.Kind)
		}
		for _, part := range event.Item.Parts {
			if len(part.Text) < fed[part] {
				return nil, fmt.Errorf("a text that was passed on has changed")
			}
			fed[part] = len(part.Text)
		}
	}
}

// calls are the calls that the recordings list: functions and custom tools.
func calls(r *responses.Reply) []string {
	var all []string
	for _, item := range r.Items {
		if c := &item.Call; item.Type == "function_call" || item.Type == "custom_tool_call" {
			all = append(all, fmt.Sprintf("%s %s %s %s %s", item.Type, c.ID, c.Namespace, c.Name, c.Payload))
		}
	}
	return all
}

// describe is a reply in short, without the places that whole and streamed replies do not
// share.
func describe(r *responses.Reply) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s %d %d\n", r.Status, r.IncompleteReason, r.InputTokens, r.OutputTokens)
	for _, item := range r.Items {
		fmt.Fprintf(&b, "%s %d %s %+v %s\n", item.Type, item.Class, item.Phase, item.Call, item.Call.Payload)
		for _, part := range item.Parts {
			fmt.Fprintf(&b, "  %v %s\n", part.Refusal, part.Text)
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
		if got := calls(whole); !slices.Equal(got, want) {
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
			single, err := responses.Read(streamed, allowing)
			if err != nil {
				t.Errorf("%s: the terminal response alone: %v", r.File, cause(err))
			} else if len(single.Items) > 0 && describe(single) != describe(whole) {
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
		reply, err := responses.Read(r.Response, allowing)
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
		if got := calls(reply); !slices.Equal(got, want) {
			t.Errorf("%s: found %q; expected %q", r.ID, got, want)
		}
	}
	if count != 465 {
		t.Errorf("%d recordings", count)
	}
}

func seeded(n int) *rand.Rand { return rand.New(rand.NewPCG(2, uint64(n))) }
