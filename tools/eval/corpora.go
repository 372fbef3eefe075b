package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/refusal"
)

// corpusFiles are the files of a folder of corpora that have completions.
var corpusFiles = []string{
	"malformed_llm_json/malformed_llm_json.jsonl",
	"parser_fixtures/ollama_parser_inputs.jsonl",
	"real_outputs/autogpt_json_protocol.jsonl",
	"real_outputs/react_injecagent_train.jsonl",
}

// CorpusCompletion is a completion of a corpus.
type CorpusCompletion struct {
	Name string // of the file, and the number of the line
	Raw  string
	// Plain says that it is a plain answer: text that no one would run as a call.
	Plain bool
}

// Omitted is a completion of a corpus that is not part of the figures, and why.
type Omitted struct {
	Name   string `json:"left_out"`
	Reason string `json:"reason"`
}

// actionInput finds a call in the form of ReAct, which is no plain answer.
var actionInput = regexp.MustCompile(`Action Input:\s*[{\[]`)

// ReadCorpus reads a file of a corpus, one JSON object a line. real says that it has what models
// wrote, whose texts are plain answers where they have no call.
func ReadCorpus(folder, file string, real bool) ([]CorpusCompletion, error) {
	data, err := os.ReadFile(filepath.Join(folder, file))
	if err != nil {
		return nil, err
	}
	return readCompletions(file, data, real)
}

func readCompletions(file string, data []byte, real bool) ([]CorpusCompletion, error) {
	var all []CorpusCompletion
	number := 0
	for line := range bytes.Lines(data) {
		number++
		var read struct {
			Raw   *string `json:"raw"`
			Shape string  `json:"shape"`
		}
		if err := json.Unmarshal(line, &read); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, number, err)
		}
		if read.Raw == nil {
			return nil, fmt.Errorf("%s:%d: there is no member raw", file, number)
		}
		text := read.Shape == "prose" || read.Shape == "fenced_code" || read.Shape == "json_scalar"
		all = append(all, CorpusCompletion{fmt.Sprintf("%s:%d", file, number), *read.Raw,
			real && text && !actionInput.MatchString(*read.Raw)})
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s has no completion", file)
	}
	return all, nil
}

// CorpusFiles returns the files that Corpora reads, as paths below its folder.
func CorpusFiles() []string { return append([]string(nil), corpusFiles...) }

// IsReal reports whether a corpus has what models wrote, and not what was written to test parsers.
func IsReal(file string) bool { return filepath.Dir(filepath.FromSlash(file)) == "real_outputs" }

// corpusIntent is what the models of a corpus are taken to want: a call of a tool of the built-in
// configuration, since those of the corpora are not there.
var corpusIntent = Intent{Tool: "web.search", Arguments: map[string]json.RawMessage{"query": json.RawMessage(`"noise of pumps"`)}}

// RefusedCase returns the case of a completion of a corpus that is refused, or why it is left out.
func (j *Judge) RefusedCase(ctx context.Context, c CorpusCompletion) (*Case, *Omitted, error) {
	refused := &Case{Name: c.Name, Ends: EndsInCall, Completion: c.Raw, Intent: corpusIntent,
		Call: &Call{Tool: corpusIntent.Tool, Arguments: json.RawMessage(encode(corpusIntent.Arguments))}}
	report, err := j.judge(ctx, refused, c.Raw, true)
	switch {
	case err != nil:
		return nil, nil, err
	case report.Refusal == nil:
		return nil, &Omitted{c.Name, "not refused: " + string(report.Verdict)}, nil
	case c.Plain:
		return nil, &Omitted{c.Name, "a plain answer: no call was wanted"}, nil
	}
	refused.Code = report.Refusal.Code
	return refused, nil, nil
}

// Prose judges the plain answers among completions.
func (j *Judge) Prose(ctx context.Context, name string, all []CorpusCompletion) (Prose, error) {
	p := Prose{Name: name, Codes: map[refusal.Code]int{}}
	for _, c := range all {
		if !c.Plain {
			continue
		}
		report, err := j.judge(ctx, &Case{}, c.Raw, true)
		if err != nil {
			return p, err
		}
		p.Answers++
		if report.Verdict == gateway.VerdictRefused {
			p.Refused++
			p.Codes[report.Refusal.Code]++
		}
	}
	return p, nil
}

// Prose counts what became of plain answers.
type Prose struct {
	Name    string               `json:"corpus"`
	Answers int                  `json:"answers"`
	Refused int                  `json:"refused"`
	Codes   map[refusal.Code]int `json:"codes"` // of the refused ones
}
