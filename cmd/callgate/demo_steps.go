package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/internal/cli"
	"github.com/callgate/callgate/internal/terminal"
)

// demoStep is one completion of the demo, and how often it is sent at most.
type demoStep struct {
	title, completion string
	times             int
}

// demoSteps are the demo. Those after the first three fail in one way each. The last is sent until
// the limit of its agent is reached, which takes more calls the slower the machine is.
func demoSteps() []demoStep {
	return []demoStep{
		{"A strict tool call runs", `{"tool":{"name":"web.search","arguments":{"query":"agent memory","num_results":1}}}`, 1},
		{"Plain text passes unchanged", "The answer needs no tool.", 1},
		{"A refund that the policy's condition allows",
			`{"tool":{"name":"payments.refund","arguments":{"payment_id":"pay_4f9c21","amount":40,"currency":"EUR"}}}`, 1},
		{"A refund beyond it", `{"tool":{"name":"payments.refund","arguments":{"payment_id":"pay_4f9c21","amount":900,"currency":"EUR"}}}`,
			1},
		{"A code fence around the call", "```json\n{\"tool\":{\"name\":\"time.now\",\"arguments\":{}}}\n```", 1},
		{"Two names in one call", `{"tool":{"name":"time.now","name":"files.delete","arguments":{}}}`, 1},
		{"A name that is nearly right", `{"tool":{"name":"time_now","arguments":{}}}`, 1},
		{"An argument too many", `{"tool":{"name":"web.search","arguments":{"query":"agent memory","extra":1}}}`, 1},
		{"A wrong type", `{"tool":{"name":"math.evaluate","arguments":{"expression":14}}}`, 1},
		{"A tool that this agent may not use", `{"tool":{"name":"files.delete","arguments":{"path":"notes.md"}}}`, 1},
		{"A path outside the project", `{"tool":{"name":"files.read","arguments":{"path":"../../secrets.txt"}}}`, 1},
		{"Over the limit", `{"tool":{"name":"web.search","arguments":{"query":"tides","num_results":1}}}`, 100},
	}
}

// demoExchange is what became of a step, as --json prints it.
type demoExchange struct {
	Title      string `json:"title"`
	Completion string `json:"completion"`
	Sent       int    `json:"sent"`
	Verdict    string `json:"verdict"` // ran, text or refused
	// What the model reads; null for text.
	Reads json.RawMessage `json:"reads"`

	tool, code, reason string
}

// The verdicts of a demoExchange.
const (
	verdictRan     = "ran"
	verdictText    = "text"
	verdictRefused = "refused"
)

// send sends a completion as often as its step says, or until it is refused.
func (s demoStep) send(ctx context.Context, x *calls.Executor) (demoExchange, error) {
	e := demoExchange{Title: s.title, Completion: s.completion}
	var o calls.Outcome
	for o.Refusal == nil && e.Sent < s.times {
		o = x.Execute(ctx, x.Kernel.Judge(ctx, gateway.Request{Inputs: []gateway.Input{{Completion: []byte(s.completion)}}}))[0]
		e.Sent++
	}
	if o.Refusal == nil && o.Result == nil {
		e.Verdict, e.reason = verdictText, s.completion
		return e, nil
	}
	e.Reads = json.RawMessage(o.Result)
	var read struct {
		ToolResult struct {
			Tool   string          `json:"tool"`
			Output json.RawMessage `json:"output"`
		} `json:"tool_result"`
	}
	if err := json.Unmarshal(o.Result, &read); err != nil {
		return e, cli.InternalError{Err: err}
	}
	e.tool, e.Verdict, e.reason = read.ToolResult.Tool, verdictRan, string(read.ToolResult.Output)
	if o.Refusal != nil {
		e.Verdict, e.code, e.reason = verdictRefused, string(o.Refusal.Code), o.Refusal.Message
	}
	if e.Sent > 1 {
		e.tool += fmt.Sprintf(" #%d", e.Sent)
	}
	return e, nil
}

// demoWidth is how many columns a line of the demo has at most.
const demoWidth = 100

// printExchanges writes a line for each exchange.
func printExchanges(w io.Writer, color func(terminal.Color, string) string, exchanges []demoExchange) {
	rows := [][4]string{{"tool", "verdict", "code", "result or reason"}}
	for _, e := range exchanges {
		rows = append(rows, [4]string{cmp.Or(e.tool, "–"), e.Verdict, cmp.Or(e.code, "–"), e.reason})
	}
	var widths [3]int
	left := demoWidth
	for column := range widths {
		for _, row := range rows {
			widths[column] = max(widths[column], utf8.RuneCountInString(row[column]))
		}
		left -= widths[column] + 2
	}
	for i, row := range rows {
		attribute := terminal.Bold
		switch row[1] {
		case verdictRan, verdictText:
			attribute = terminal.Green
		case verdictRefused:
			attribute = terminal.Red
		}
		// Padding stands outside the color, so that the columns are those of plain text.
		for column, width := range widths {
			text := row[column]
			padding := strings.Repeat(" ", width-utf8.RuneCountInString(text)+2)
			if column > 0 || i == 0 {
				text = color(attribute, text)
			}
			fmt.Fprint(w, text, padding)
		}
		last := shortened(row[3], left)
		if i == 0 {
			last = color(attribute, last)
		}
		fmt.Fprintln(w, last)
	}
}

// shortened is what of a text fits into a width: whole sentences, or else whole words of the first
// with an ellipsis, which keeps half a sentence from passing for the whole.
func shortened(text string, width int) string {
	if utf8.RuneCountInString(text) <= width {
		return text
	}
	cut := string([]rune(text)[:width])
	if end := max(strings.LastIndex(cut, ". "), strings.LastIndex(cut, "? ")); end > 0 {
		return cut[:end+1]
	}
	if strings.HasSuffix(cut, ".") || strings.HasSuffix(cut, "?") {
		return cut
	}
	cut = string([]rune(cut)[:width-1])
	if end := strings.LastIndex(cut, " "); end > 0 {
		cut = cut[:end]
	}
	return cut + "…"
}
