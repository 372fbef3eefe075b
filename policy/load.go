package policy

import (
	"errors"
	"fmt"

	"github.com/callgate/callgate/history"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/policy/condition"
)

// Source is the text of a policy file.
type Source struct {
	File string // for messages only
	Data []byte
}

// Load parses a policy file by the grammar of the package comment, checks it and
// compiles its conditions. The error joins *FileError values, one for each fault
// (errors.Join); on an error there is no Policy. Warnings name rows that can
// match nothing, or repeat another, by their lines; tools and workspaces serve these
// warnings and the check of conditions, and are not kept. Labels are those that threads can have. Nil tools
// are not known, and what conditions read of the past of tools is not checked.
func Load(src Source, tools []condition.Tool, workspaces Workspaces, labels ...string) (*Policy, []Warning, error) {
	f := &faults{file: src.File}
	records := readRecords(src.Data, f)
	if err := f.err(); err != nil {
		return nil, nil, err
	}
	l := &loader{faults: f, rows: map[Row]int{}, grants: map[grant]int{}}
	for _, r := range records {
		l.add(r)
	}
	checkRoles(l.policy.grants, f)
	if err := l.compile(tools, labels); err != nil {
		return nil, nil, err
	}
	if err := f.err(); err != nil {
		return nil, nil, err
	}
	p := &l.policy
	p.index = newIndex(p.rules, p.grants)
	p.settled, p.enforcers = newVerdictCache(maxAnswers), newVerdictCache(maxEnforcers)
	if err := selfTest(); err != nil {
		return nil, nil, err
	}
	l.warnings = append(l.warnings, p.unusedRules(src.File, tools, workspaces)...)
	sortWarnings(l.warnings)
	return p, l.warnings, nil
}

// loader gathers one file.
type loader struct {
	faults   *faults
	policy   Policy
	warnings []Warning
	records  []record      // of policy.rules, in the same order
	rows     map[Row]int   // their lines, by the row without file and line
	grants   map[grant]int // likewise
}

// add takes in one record.
func (l *loader) add(r record) {
	switch kind := r.fields[0]; kind.text {
	case "p":
		parsed, ok := parseRow(r, l.faults)
		if !ok {
			return
		}
		key := parsed.Content()
		if first, repeated := l.rows[key]; repeated {
			l.repeated(r.line, first)
			return
		}
		l.rows[key] = r.line
		l.policy.rules = append(l.policy.rules, parsed)
		l.records = append(l.records, r)
	case "g":
		parsed, ok := parseGrant(r, l.faults)
		if !ok {
			return
		}
		key := *parsed
		key.line = 0
		if first, repeated := l.grants[key]; repeated {
			l.repeated(r.line, first)
			return
		}
		l.grants[key] = r.line
		l.policy.grants = append(l.policy.grants, parsed)
	default:
		l.faults.add(r.line, kind.column, "a row of type "+parser.Quote(kind.text), "p or g")
	}
}

func (l *loader) repeated(line, first int) {
	l.warnings = append(l.warnings, Warning{
		File: l.faults.file, Line: line, Kind: Repeated,
		Message: fmt.Sprintf("lines %d and %d hold the same row; the second changes nothing", first, line),
	})
}

// compile compiles the conditions of all rows.
func (l *loader) compile(tools []condition.Tool, labels []string) error {
	var c *condition.Compiler
	for i, r := range l.policy.rules {
		if r.When == "" {
			continue
		}
		if c == nil {
			made, err := condition.NewCompiler(tools, labels...)
			if err != nil {
				return err
			}
			c = made
		}
		compiled, issue := c.Compile(r.When, r.Tool)
		if issue == nil {
			issue = l.read(compiled.Reads())
		}
		if issue != nil {
			rec := l.records[i]
			l.faults.add(r.Line, rec.columnOf(rec.fields[4], issue.Offset), issue.Found, issue.Expected)
		}
		r.condition = compiled
	}
	return nil
}

// read adds what a condition reads of the past.
func (l *loader) read(reads condition.Reads) *condition.Issue {
	all := l.policy.reads.With(reads)
	if len(all.Terms) > len(l.policy.reads.Terms) {
		windowed := 0
		for _, t := range all.Terms {
			if t.Window > 0 {
				windowed++
			}
		}
		switch {
		case windowed > history.MaxWindowed:
			return &condition.Issue{Found: fmt.Sprintf("more than %d terms with a window", history.MaxWindowed),
				Expected: "fewer: each is kept for every thread, or every caller"}
		case len(all.Terms) > history.MaxTerms:
			return &condition.Issue{Found: fmt.Sprintf("more than %d terms", history.MaxTerms),
				Expected: "fewer: each is kept for every thread, or every caller"}
		}
	}
	l.policy.reads = all
	return nil
}

// selfTest asks casbin one question of each kind, so that a casbin that does not work
// is an error of the load.
func selfTest() error {
	at := domain{"w", "p"}
	all := everywhere()
	rules := []*rule{
		{Row: Row{Line: 1, Subject: rolePrefix + "r", Domain: "w/*", Tool: "t.*", Effect: Allow}, domain: domain{"w", "*"}},
		{Row: Row{Line: 2, Subject: "a", Domain: "*", Tool: "t.deny", Effect: Deny}, domain: all},
	}
	grants := []*grant{{member: "a", role: rolePrefix + "r", domain: all}}
	x := newIndex(rules, grants)
	for tool, want := range map[string]bool{"t.x": true, "t.deny": false} {
		candidates, by := x.candidates("a", at, tool)
		e, err := newEnforcer("a", at, tool, candidates, by)
		if err != nil {
			return err
		}
		if d, err := e.enforce(&evaluation{probe: true}); err != nil || d.Allowed != want {
			return fmt.Errorf("policy: the enforcer fails its probe: %w", errEnforcer)
		}
	}
	// Rows that casbin does not match, though an index says so, are no answer.
	e, err := newEnforcer("a", at, "u.x", rules, grants)
	if err != nil {
		return err
	}
	if _, err := e.enforce(&evaluation{probe: true}); !errors.Is(err, errEnforcer) {
		return fmt.Errorf("policy: the enforcer fails its probe: %w", errEnforcer)
	}
	return nil
}
