package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/callgate/callgate/internal/cli"
	"github.com/callgate/callgate/refusal"
)

// OmittedCodes names the codes that no case has, and why.
func OmittedCodes(cases []Case) []Omitted {
	var all []Omitted
	for _, code := range refusal.Codes() {
		if !slices.ContainsFunc(cases, func(c Case) bool { return c.Code == code }) {
			all = append(all, Omitted{string(code), cmp.Or(untested[code], noCase)})
		}
	}
	slices.SortFunc(all, func(a, b Omitted) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// noCase is said of a code that a model may be told, and that no case has.
const noCase = "no case has it yet"

// The reasons for which a code reaches no model.
const (
	ofTheRequest = "a fault of the HTTP request: its sender is told, and no completion is read"
	ofTheCaller  = "the request's caller or agent is refused before its completion is read"
	ofTheKey     = "of an idempotency key or of answers, which an application chooses: it is told"
	endsTheRun   = "it ends the run: the application is told, and the model is not asked again"
	noModel      = "the model itself does not answer: the application is told"
)

// untested are the codes that reach no model, with the reason. It is read only.
var untested = map[refusal.Code]string{
	refusal.BadRequest: ofTheRequest, refusal.NotFound: ofTheRequest, refusal.MethodNotAllowed: ofTheRequest,
	refusal.RequestTooLarge: ofTheRequest, refusal.UnsupportedMediaType: ofTheRequest,
	refusal.Unauthenticated: ofTheCaller, refusal.AgentUnknown: ofTheCaller, refusal.CallerRateLimited: ofTheCaller,
	refusal.CallInProgress: ofTheKey, refusal.IdempotencyConflict: ofTheKey,
	refusal.LoopDetected: endsTheRun, refusal.BoundReached: endsTheRun,
	refusal.UpstreamUnavailable: noModel, refusal.UpstreamTimeout: noModel,
	refusal.Canceled: "the client has left, and nobody is told",
}

// row is the figures of one code.
type row struct {
	code  refusal.Code
	ends  Ending
	cases int
	cells map[string]*cell
}

// cell is the figures of one code and one model.
type cell struct{ least, most, sum, settled, count int }

func (c *cell) add(r *Result) {
	c.count++
	if !r.Settled {
		return
	}
	if c.settled == 0 || r.Turns < c.least {
		c.least = r.Turns
	}
	c.most, c.sum = max(c.most, r.Turns), c.sum+r.Turns
	c.settled++
}

// String is the turns, as "1" or "1 to 3 (mean 1.5)", and how many exchanges did not end.
func (c *cell) String() string {
	text := "never"
	switch {
	case c.settled == 0:
		return text
	case c.least == c.most:
		text = strconv.Itoa(c.most)
	default:
		text = fmt.Sprintf("%d to %d (mean %.1f)", c.least, c.most, float64(c.sum)/float64(c.settled))
	}
	if missed := c.count - c.settled; missed > 0 {
		text += fmt.Sprintf(", %d never", missed)
	}
	return text
}

// rows groups results by code, in the order of the stages and of the names.
func rows(results []Result) []*row {
	var list []*row
	byKey := map[string]*row{}
	for i := range results {
		r := &results[i]
		key := string(r.Code) + " " + string(r.Ends)
		found := byKey[key]
		if found == nil {
			found = &row{code: r.Code, ends: r.Ends, cells: map[string]*cell{}}
			byKey[key] = found
			list = append(list, found)
		}
		if found.cells[r.Model] == nil {
			found.cells[r.Model] = &cell{}
		}
		found.cells[r.Model].add(r)
		found.cases = max(found.cases, found.cells[r.Model].count)
	}
	stages := refusal.Stages()
	slices.SortStableFunc(list, func(a, b *row) int {
		return cmp.Or(
			cmp.Compare(slices.Index(stages, refusal.New(a.code, "").Stage), slices.Index(stages, refusal.New(b.code, "").Stage)),
			strings.Compare(string(a.code), string(b.code)),
			strings.Compare(string(a.ends), string(b.ends)))
	})
	return list
}

// WriteTurns writes a table of the turns that each model needed, by code.
func WriteTurns(w io.Writer, results []Result) error {
	head := []string{"CODE", "CASES", "ENDS IN"}
	for _, m := range Models {
		head = append(head, strings.ToUpper(m.Name))
	}
	table := cli.NewTable(w, false, head...)
	for _, r := range rows(results) {
		cells := []string{string(r.code), strconv.Itoa(r.cases), string(r.ends)}
		for _, m := range Models {
			text := "-"
			if c := r.cells[m.Name]; c != nil {
				text = c.String()
			}
			cells = append(cells, text)
		}
		if err := table.Print(nil, cells...); err != nil {
			return err
		}
	}
	return table.Flush()
}

// Failed counts the exchanges of models that listen that needed more turns than a bound, or did
// not end as they were to, and those of the stubborn one in which a call passed.
func Failed(results []Result, maxTurns int) int {
	failed := 0
	for i := range results {
		r := &results[i]
		if r.Model == Stubborn && r.Accepted || r.Model != Stubborn && (!r.Settled || r.Turns > maxTurns) {
			failed++
		}
	}
	return failed
}

// WriteProse writes a table of the plain answers that were refused.
func WriteProse(w io.Writer, all []Prose) error {
	table := cli.NewTable(w, false, "PLAIN ANSWERS", "READ", "REFUSED", "SHARE", "CODES")
	for _, p := range all {
		var codes []string
		for c, n := range p.Codes {
			codes = append(codes, fmt.Sprintf("%s %d", c, n))
		}
		slices.Sort(codes)
		share := 100 * float64(p.Refused) / float64(max(p.Answers, 1))
		if err := table.Print(nil, p.Name, strconv.Itoa(p.Answers), strconv.Itoa(p.Refused),
			fmt.Sprintf("%.1f %%", share), cmp.Or(strings.Join(codes, ", "), "-")); err != nil {
			return err
		}
	}
	return table.Flush()
}
