package chat

import (
	"bytes"
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
	"github.com/callgate/callgate/internal/testkit/detector"
	"github.com/callgate/callgate/upstream"
)

type recording struct {
	File     string `json:"file"`
	Style    string `json:"style"`
	Expected []struct {
		ID, Name, Arguments string
	} `json:"expected_calls"`
}

// TestRecordedStreams assembles recorded streams of many providers, for every
// way of cutting the bytes in two, and for others in more.
func TestRecordedStreams(t *testing.T) {
	detector.OneGoroutine(t) // TestStreamsShareNothing reads several at a time
	read := 0
	for _, r := range corpora.Lines[recording](t, corpora.Path(t, "sse_streams", "index.jsonl")) {
		if r.Style != "openai-chat" {
			continue
		}
		read++
		t.Run(r.File, func(t *testing.T) {
			t.Parallel()
			b, err := os.ReadFile(corpora.Path(t, "sse_streams", r.File))
			if err != nil {
				t.Fatal(err)
			}
			var want []string
			for _, c := range r.Expected {
				want = append(want, c.ID+":"+c.Name+":"+c.Arguments)
			}
			check := func(how string, from io.Reader) *turns.Reply {
				t.Helper()
				c, err := readStream(from)
				if err != nil {
					t.Fatalf("%s: %v", how, err)
				}
				if found := callsOf(c); !slices.Equal(found, want) {
					t.Fatalf("%s: found %q, expected %q", how, found, want)
				}
				return c
			}
			whole := described(check("whole", bytes.NewReader(b)))
			check("byte by byte", iotest.OneByteReader(bytes.NewReader(b)))
			random := rand.New(rand.NewPCG(1, uint64(len(b))))
			for range 20 {
				var cut []int
				for range len(b) / 10 {
					cut = append(cut, random.IntN(40))
				}
				if c := check("at random", &pieces{b, cut}); described(c) != whole {
					t.Fatal("another completion")
				}
			}
			// Every cut, in a window of the events around it: at the end of an
			// event, the scanner is as new.
			bounds := []int{0}
			for i := range b {
				if bytes.HasSuffix(b[:i+1], []byte("\n\n")) {
					bounds = append(bounds, i+1)
				}
			}
			for i := range bounds {
				if testing.Short() && i > 20 {
					break
				}
				window := b[bounds[i]:]
				if i+2 < len(bounds) {
					window = b[bounds[i]:bounds[i+2]]
				}
				events := scanned(bytes.NewReader(window))
				for at := range window {
					if !slices.Equal(scanned(&pieces{window, []int{at}}), events) {
						t.Fatalf("cut at %d: other events", bounds[i]+at)
					}
				}
			}
		})
	}
	if least := corpora.Count("sse_streams", 27, 11); read < least {
		t.Errorf("found %d recordings, expected at least %d", read, least)
	}
}

// TestRecordedStreamsBrokenOff breaks each recording off: no calls may come of
// one that is not whole, and of one that is, all must.
func TestRecordedStreamsBrokenOff(t *testing.T) {
	detector.OneGoroutine(t)
	for _, r := range corpora.Lines[recording](t, corpora.Path(t, "sse_streams", "index.jsonl")) {
		if r.Style != "openai-chat" {
			continue
		}
		b, err := os.ReadFile(corpora.Path(t, "sse_streams", r.File))
		if err != nil {
			t.Fatal(err)
		}
		turn := bytes.Index(b, []byte(`"finish_reason":"tool_calls"`)) // the first turn's end
		if turn < 0 {
			turn = bytes.Index(b, []byte(`"finish_reason": "tool_calls"`))
		}
		if turn < 0 {
			t.Fatalf("%s: no end", r.File)
		}
		step := max(1, len(b)/200)
		for at := 0; at < len(b); at += step {
			c, err := readStream(bytes.NewReader(b[:at]))
			if at < turn && err == nil {
				t.Fatalf("%s, broken off at %d: %d calls came of it", r.File, at, len(callsOf(c)))
			}
		}
	}
}

// handmade are streams with each deviation that is taken, and the calls that must come of them; none
// if the stream is refused. In each, the finish_reason is the first tool_calls or stop.
var handmade = map[string]struct {
	deltas []string
	calls  string
}{
	"late id":              {[]string{`{"index":0,"function":{"name":"f","arguments":""}}`, `{"index":0,"id":"a"}`, `{"index":0,"function":{"arguments":"{\"x\":"}}`, `{"index":0,"function":{"arguments":"1}"}}`}, `a:f:{"x":1}`},
	"late name":            {[]string{`{"index":0,"id":"a"}`, `{"index":0,"function":{"name":"f","arguments":"{}"}}`}, `a:f:{}`},
	"no index":             {[]string{`{"id":"a","function":{"name":"f","arguments":""}}`, `{"function":{"arguments":"{\"x\":\"\\ud83d\\ude00 ä\""}}`, `{"function":{"arguments":"}"}}`, `{"id":"b","function":{"name":"g","arguments":"{"}}`, `{"function":{"arguments":"}"}}`}, `a:f:{"x":"\ud83d\ude00 ä"} b:g:{}`},
	"gaps":                 {[]string{`{"index":1,"id":"a","function":{"name":"f","arguments":"{"}}`, `{"index":4,"id":"b","function":{"name":"g","arguments":"{"}}`, `{"index":1,"function":{"arguments":"}"}}`, `{"index":4,"function":{"arguments":"}"}}`}, `a:f:{} b:g:{}`},
	"an object":            {[]string{`{"index":0,"id":"a","function":{"name":"f","arguments":{"x" : "ä\n"}}}`}, `a:f:{"x" : "ä\n"}`},
	"no id":                {[]string{`{"index":0,"function":{"name":"f","arguments":"{}"}}`, `{"index":1,"id":"","function":{"name":"f","arguments":"{}"}}`}, `:f:{} :f:{}`},
	"an id that changes":   {[]string{`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}`, `{"index":0,"id":"b","function":{"name":"f","arguments":"{}"}}`}, `a:f:{} b:f:{}`},
	"an empty one at last": {[]string{`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}`, `{"index":1,"id":"","type":"function","function":{"name":"","arguments":""}}`}, `a:f:{}`},
	"a name that changes":  {[]string{`{"index":0,"id":"a","function":{"name":"f","arguments":"{"}}`, `{"index":0,"function":{"name":"g","arguments":"}"}}`}, ``},
	"either of two":        {[]string{`{"id":"a","function":{"name":"f"}}`, `{"id":"b","function":{"name":"g"}}`, `{"function":{"arguments":"{}"}}`}, ``},
	"two of one name":      {[]string{`{"index":0,"function":{"name":"f"}}`, `{"index":0,"function":{"name":"f","arguments":"{}"}}`}, ``},
}

// TestHandmadeStreams: for every cut of the bytes in two, and for a byte at a time, the same calls
// come of a stream; of its beginning alone, none before the finish_reason has come, and later the same.
func TestHandmadeStreams(t *testing.T) {
	detector.OneGoroutine(t)
	for name, c := range handmade {
		for ending, end := range map[string]string{
			"[DONE]":            "data: [DONE]\n\n",
			"none":              "",
			"twice, and spaces": "data:  [DONE] \r\n\r\ndata: [DONE]",
			"a second reason":   "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: {\"usage\":{\"total_tokens\":1.0}}\n\ndata:\n\nevent: ping\ndata: {}\n\ndata: [DONE]\n\n",
		} {
			stream := ": hello\n\ndata: {\"choices\":null}\r\n\r\n"
			for _, d := range c.deltas {
				stream += `data: {"choices":[{"delta":{"content":[{"type":"thinking","thinking":"hm"}],"tool_calls":[` + d + `]}}]}` + "\n\n"
			}
			finish := `data: {"choices":[{"finish_reason":"tool_calls","delta":{}}]}` + "\n\n"
			finished := len(stream) + len(finish)
			stream += finish + end
			read := func(from io.Reader) string {
				reply, err := readStream(from)
				if err != nil {
					return ""
				}
				return strings.Join(callsOf(reply), " ")
			}
			why := name + ", ending: " + ending
			if got := read(iotest.OneByteReader(strings.NewReader(stream))); got != c.calls {
				t.Errorf("%s, byte by byte: found %q, expected %q", why, got, c.calls)
			}
			for at := range stream {
				if got := read(&pieces{[]byte(stream), []int{at}}); got != c.calls {
					t.Fatalf("%s, cut at %d: found %q, expected %q", why, at, got, c.calls)
				}
				if got := read(strings.NewReader(stream[:at])); got != "" && (at < finished-1 || got != c.calls) {
					t.Fatalf("%s, broken off at %d: found %q", why, at, got)
				}
			}
		}
	}
}

// scanned are the events of a stream.
func scanned(from io.Reader) (all []string) {
	r := sse.Reader{Source: from, MaxBytes: 1 << 20, Last: upstream.IsDone}
	for {
		name, data, err := r.Next()
		if err != nil {
			return append(all, err.Error())
		}
		all = append(all, fmt.Sprintf("%s=%s", name, data))
	}
}

// pieces reads in the lengths of a list, the rest at once.
type pieces struct {
	b   []byte
	cut []int
}

func (p *pieces) Read(into []byte) (int, error) {
	if len(p.b) == 0 {
		return 0, io.EOF
	}
	n := len(p.b)
	if len(p.cut) > 0 {
		n, p.cut = min(n, p.cut[0]), p.cut[1:]
	}
	n = copy(into, p.b[:n])
	p.b = p.b[n:]
	return n, nil
}
