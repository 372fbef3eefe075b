package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestScenariosThatAreRefused(t *testing.T) {
	for scenario, text := range map[string]string{
		``:                                       "found no scenario",
		`[]`:                                     "found no scenario",
		`{}`:                                     "found no turns",
		`{"turns":[]}`:                           "found no turns",
		`{"turns":[{}]}`:                         "/turns/0: found neither text nor calls",
		`{"turns":[{"text":7}]}`:                 "/turns/0/text",
		`{"turns":[{"text":"a"}],"turn":1}`:      "turn",
		`{"turns":[{"text":"a","text":"b"}]}`:    "duplicate",
		`{"turns":[{"text":"a"}]}{}`:             "found no scenario",
		`{"Turns":[{"text":"a"}]}`:               "Turns",
		`{"turns":[{"text":"a"}],"chunk":0}`:     "chunk: found 0",
		`{"turns":[{"text":"a"}],"write":-1}`:    "write: found -1",
		`{"turns":[{"text":"a"}],"pause_ms":-1}`: "pause_ms: found -1",
		`{"turns":[{"text":"a"}],"pause_ms":10001}`:                                          "expected 0 to 10000",
		`{"turns":[{"text":"a"}],"pause_ms":9223372036854775807}`:                            "expected 0 to 10000",
		`{"turns":[{"text":"a","fault":"sleep"}]}`:                                           `the fault "sleep"`,
		`{"turns":[{"calls":[{"arguments":{}}]}]}`:                                           "/turns/0: /calls/0: found no name",
		`{"turns":[{"calls":[{"name":"a"}]}]}`:                                               "/calls/0: found no arguments",
		`{"turns":[{"calls":[{"name":"a","arguments":[]}]}]}`:                                "/calls/0: found no arguments",
		`{"turns":[{"text":"a","after_refusal":{}}]}`:                                        "/after_refusal: found neither",
		`{"turns":[{"text":"a","after_refusal":{"text":"b","after_refusal":{"text":"c"}}}]}`: "within after_refusal",
	} {
		if _, err := readScenario([]byte(scenario)); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: got %v, want an error with %q", scenario, err, text)
		}
	}
}

func TestScenarioIsReadWhole(t *testing.T) {
	s, err := readScenario([]byte(`{"about":"x","chunk":3,"write":2,"pause_ms":10,"turns":[{"text":"a","fault":"cut","calls":[
		{"name":"b.c","arguments":{"d" : [1, 2],
		"e":1.50}}, {"name":"f","arguments":"{broken\n"}]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	r := s.play(conversation{}, true)
	if s.About != "x" || s.Chunk != 3 || s.Write != 2 || s.pause().Milliseconds() != 10 || r.text != "a" || r.fault != faultCut {
		t.Errorf("got %+v, %+v", s, r)
	}
	if got := r.calls[0].Function; got.Name != "b_c" || got.Arguments != `{"d":[1,2],"e":1.50}` {
		t.Errorf("got %+v, want the arguments' bytes on one line", got)
	}
	if got := r.calls[1].Function.Arguments; got != "{broken\n" {
		t.Errorf("got %q, want the string verbatim", got)
	}
	const want = "a\n" + `{"tool":{"name":"b.c","arguments":{"d":[1,2],"e":1.50}}}` + "\n" + `{"tool":{"name":"f","arguments":{broken` + "\n}}"
	if got := s.play(conversation{}, false); got.text != want || got.calls != nil {
		t.Errorf("got %q, want %q", got.text, want)
	}
	if s, err := readScenario([]byte(`{"turns":[{"text":"a"}]}`)); err != nil || s.Chunk != defaultChunk || s.Write != 0 {
		t.Errorf("got %+v, %v; want the defaults", s, err)
	}
}

func TestRepertoire(t *testing.T) {
	r, err := newRepertoire(defaultScenario)
	if err != nil {
		t.Fatal(err)
	}
	if r.find("gpt") != r.scenarios["agent"] || r.find("text") != r.scenarios["text"] {
		t.Error("another scenario is played than the one that was named, or agent")
	}
	var listed bytes.Buffer
	r.list(&listed)
	for _, name := range []string{"agent", "bytes", "call", "cut", "loop", "near-name", "parallel", "prose", "repair", "sample", "stall", "stubborn", "text"} {
		if s := r.scenarios[name]; s == nil || s.About == "" || !strings.Contains(listed.String(), s.About+"\n") {
			t.Errorf("there is no scenario %s, or the list does not say what it shows:\n%s", name, &listed)
		}
	}
	if r, err = newRepertoire("text"); err != nil || r.find("gpt") != r.scenarios["text"] {
		t.Errorf("--scenario text is not played for other names: %v", err)
	}
	file := filepath.Join(t.TempDir(), "own.json")
	if err := os.WriteFile(file, []byte(`{"turns":[{"text":"own"}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if r, err = newRepertoire(file); err != nil || r.find("gpt").Turns[0].Text != "own" || r.find("text") != r.scenarios["text"] {
		t.Errorf("a file is not played for other names, or for those of the bundled ones: %v", err)
	}
	if err := os.WriteFile(file, bytes.Repeat([]byte(" "), maxScenario+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := newRepertoire(file); err == nil || !strings.Contains(err.Error(), "found a file over") {
		t.Errorf("a large file: got %v", err)
	}
}
