package main

import (
	_ "embed"
	"fmt"
	"io"
	"os"
	"strings"
	"text/template"

	"github.com/callgate/callgate/internal/cli"
)

// summary is the last line of -json.
type summary struct {
	Kind     string  `json:"kind"`
	Cases    int     `json:"exchanges"`
	Failed   int     `json:"failed"`
	LeftOut  int     `json:"left_out"`
	MaxTurns int     `json:"max_turns"`
	Prose    []Prose `json:"prose,omitempty"`
}

// failed counts the exchanges that needed more turns than a bound, or ended otherwise than they
// were to.
func (v *evaluation) failed(maxTurns int) int {
	return Failed(v.results, maxTurns) + Failed(v.refused, maxTurns)
}

// write writes what was found, as the flags say.
func (v *evaluation) write(o options, stdout io.Writer) error {
	if o.json {
		return v.writeJSON(o.maxTurns, stdout)
	}
	if o.page == "" {
		return v.writeText(stdout)
	}
	return v.writePage(o.page)
}

func (v *evaluation) writeJSON(maxTurns int, stdout io.Writer) error {
	lines := cli.NewTable(stdout, true)
	for _, list := range [][]Result{v.results, v.refused} {
		for i := range list {
			if err := lines.Print(list[i]); err != nil {
				return err
			}
		}
	}
	for _, o := range v.omitted {
		if err := lines.Print(o); err != nil {
			return err
		}
	}
	return lines.Print(summary{"summary", len(v.results) + len(v.refused), v.failed(maxTurns), len(v.omitted), maxTurns, v.prose})
}

func (v *evaluation) writeText(stdout io.Writer) error {
	fmt.Fprintf(stdout, "Completions after the refused one, until the exchange ended as it was to:\n\n")
	if err := WriteTurns(stdout, v.results); err != nil {
		return err
	}
	if len(v.refused) > 0 {
		fmt.Fprintf(stdout, "\nThe same for the refused completions of the corpora:\n\n")
		if err := WriteTurns(stdout, v.refused); err != nil {
			return err
		}
	}
	if len(v.omitted) > 0 {
		fmt.Fprintf(stdout, "\n%d codes and completions are left out; -json names each, and why\n", len(v.omitted))
	}
	if len(v.prose) == 0 {
		return nil
	}
	fmt.Fprintln(stdout)
	return WriteProse(stdout, v.prose)
}

//go:embed grace.md.tmpl
var pageTemplate string

// writePage writes the page of docs.
func (v *evaluation) writePage(file string) error {
	var turns, corpora, prose strings.Builder
	for _, err := range []error{WriteTurns(&turns, v.results), WriteTurns(&corpora, v.refused), WriteProse(&prose, v.prose)} {
		if err != nil {
			return err
		}
	}
	if len(v.refused) == 0 {
		corpora.Reset() // a head without rows
	}
	page, err := template.New("grace.md").Parse(pageTemplate)
	if err != nil {
		return err
	}
	var text strings.Builder
	if err := page.Execute(&text, map[string]any{"Turns": turns.String(), "Corpora": corpora.String(), "Prose": prose.String(),
		"Omitted": len(v.omitted)}); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(text.String()), 0o644)
}
