package budget

import (
	"context"
	"encoding/base64"
	"errors"
	"slices"
	"strings"
)

// Names are the subjects that a configuration names. Projects are workspace/project.
type Names struct{ Agents, Principals, Projects []string }

// LevelQuery selects levels. Count bounds how many are returned, and must be at least 1.
type LevelQuery struct {
	After string // Next of the page before; empty: from the beginning
	Count int
	Names Names
}

// Level is the state of a budget for one subject in the current window. Without a subject it is for
// requests that name none, or, with PerAll, for everything.
type Level struct {
	Budget  *Budget
	Subject string
	State
}

// LevelPage is a page of levels, by the names of the budget and of the subject.
type LevelPage struct {
	Levels   []Level
	Currency string
	Next     string // empty: there are no more
}

// ErrCursor is the error for a LevelQuery.After that is not of a page.
var ErrCursor = errors.New("budget: not the next of a page")

// Levels returns a page of the counters of all budgets: those of the names that the query has, and
// those that this process has charged. It reads the counters of the page, and no more.
func (l *Ledger) Levels(ctx context.Context, q LevelQuery) (LevelPage, error) {
	budget, subject, err := readCursor(q.After)
	set := l.Set()
	if err != nil || set == nil {
		return LevelPage{}, err
	}
	used := map[Counter][]string{}
	for _, c := range l.Limiter.Used() {
		of := c.Subject
		c.Subject = ""
		used[c] = append(used[c], of)
	}
	sorted := make([]*Budget, 0, len(set.Budgets))
	for i := range set.Budgets {
		if b := &set.Budgets[i]; b.Name >= budget {
			sorted = append(sorted, b)
		}
	}
	slices.SortFunc(sorted, func(a, b *Budget) int { return strings.Compare(a.Name, b.Name) })
	page := LevelPage{Currency: set.Currency}
	var charges []Charge
	for _, b := range sorted {
		all := b.subjects(&q.Names)
		whole := Charge{Budget: b}
		all = append(all, used[whole.Counter()]...)
		slices.Sort(all)
		for _, of := range slices.Compact(all) {
			if q.After != "" && b.Name == budget && of <= subject {
				continue
			}
			if len(charges) == q.Count {
				last := charges[q.Count-1]
				page.Next = cursor(last.Budget.Name, last.Subject)
				return l.read(ctx, charges, page)
			}
			charges = append(charges, Charge{b, of})
		}
	}
	return l.read(ctx, charges, page)
}

// read reads the states of counters into a page.
func (l *Ledger) read(ctx context.Context, charges []Charge, page LevelPage) (LevelPage, error) {
	states, err := l.Limiter.Read(ctx, charges)
	if err != nil {
		return LevelPage{}, err
	}
	for i := range charges {
		page.Levels = append(page.Levels, Level{charges[i].Budget, charges[i].Subject, states[i]})
	}
	return page, nil
}

// subjects are those of some names that a budget may be counted for, and none.
func (b *Budget) subjects(n *Names) []string {
	names, patterns := []string(nil), []string(nil)
	switch b.Per {
	case PerAgent:
		names, patterns = n.Agents, b.Agents
	case PerPrincipal:
		names, patterns = n.Principals, b.Principals
	case PerProject:
		names, patterns = n.Projects, b.Projects
	}
	all := []string{""}
	for _, name := range names {
		if matches(patterns, name) {
			all = append(all, name)
		}
	}
	return all
}

// cursor is a text for the place of a counter in the order of all.
func cursor(budget, subject string) string {
	e := base64.RawURLEncoding
	return e.EncodeToString([]byte(budget)) + "." + e.EncodeToString([]byte(subject))
}

func readCursor(text string) (budget, subject string, _ error) {
	if text == "" {
		return "", "", nil
	}
	first, second, ok := strings.Cut(text, ".")
	b, err := base64.RawURLEncoding.DecodeString(first)
	s, err2 := base64.RawURLEncoding.DecodeString(second)
	if !ok || err != nil || err2 != nil {
		return "", "", ErrCursor
	}
	return string(b), string(s), nil
}
