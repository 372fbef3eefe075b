package policy

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/policy/condition"
	"github.com/callgate/callgate/policy/internal/lexical"
)

// rolePrefix begins the name of every role and of no agent.
const rolePrefix = "role:"

// Effect is the effect of a row on a request that it matches.
type Effect string

// The effects. The file spells the third ask:RULE.
const (
	Allow Effect = "allow"
	Deny  Effect = "deny"
	// Ask permits a call once people have approved it by the row's rule.
	Ask Effect = "ask"
)

// Row is one p row of the policy file, as written.
type Row struct {
	File    string
	Line    int // from 1
	Subject string
	Domain  string
	Tool    string
	When    string // CEL; empty means always
	Effect  Effect
	Rule    string // of approval; empty unless Effect is Ask
}

// String names the row for an operator: file:line and its fields.
func (r Row) String() string {
	effect := string(r.Effect)
	if r.Effect == Ask {
		effect = askPrefix + r.Rule
	}
	return fmt.Sprintf("%s: %s %s in %s, tool %s", r.Place(), effect, r.Subject, r.Domain, r.Tool)
}

// Place is where the row stands, as file:line.
func (r Row) Place() string { return r.File + ":" + strconv.Itoa(r.Line) }

// MayMatch reports whether the domain and the tool of the row match a request, and its subject
// is the agent or a role, which the agent may have.
func (r Row) MayMatch(request Request) bool {
	return (isRole(r.Subject) || r.Subject == request.Agent) &&
		lexical.Matches(request.Workspace+"/"+request.Project, r.Domain) && lexical.Matches(request.Tool, r.Tool)
}

// rule is a row made ready for evaluation.
type rule struct {
	Row
	place     [1]string // of the row, so that a decision can have it without an allocation
	domain    domain
	condition *condition.Condition // nil: always
	count     counter
}

// grant is one g row.
type grant struct {
	line         int
	member, role string
	domainText   string
	domain       domain
}

// domain is a domain or a pattern of domains: {"acme", "alpha"}, {"acme", "*"} or
// {"*", "*"}. No workspace or project is named "*", so the forms never meet.
type domain struct{ workspace, project string }

// everywhere is the pattern "*".
func everywhere() domain { return domain{"*", "*"} }

// String is the domain as the file writes it.
func (p domain) String() string {
	if p == everywhere() {
		return "*"
	}
	return p.workspace + "/" + p.project
}

// patterns lists what can stand in a row and match p, the widest last.
func (p domain) patterns() [3]domain {
	return [3]domain{p, {p.workspace, "*"}, everywhere()}
}

// askPrefix begins the effect of a row that asks.
const askPrefix = string(Ask) + ":"

// maxRuleName is the longest name of a rule in bytes.
const maxRuleName = 64

// IsRuleName reports whether a rule of approval may have this name: up to 64 letters, digits,
// underscores and hyphens of ASCII.
func IsRuleName(name string) bool {
	return name != "" && len(name) <= maxRuleName && strings.Trim(name, ruleAlphabet) == ""
}

// RuleNamePattern is IsRuleName as a regular expression.
const RuleNamePattern = "^[A-Za-z0-9_-]{1,64}$"

const ruleAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"

// parseEffect reads an effect, and the rule that it names.
func parseEffect(s string) (effect Effect, rule string, ok bool) {
	if rule, asks := strings.CutPrefix(s, askPrefix); asks {
		return Ask, rule, IsRuleName(rule)
	}
	effect = Effect(s)
	return effect, "", effect == Allow || effect == Deny
}

const (
	wantEffect  = "allow, deny or ask:RULE, spelled so, where RULE is the name of a rule (up to 64 letters, digits, _ and -)"
	wantSubject = "an agent, or a role written role:NAME"
	wantDomain  = "workspace/project, workspace/* or *"
	wantTool    = "a tool's name, PREFIX.* or *"
)

// isRole reports whether a name is written as a role.
func isRole(name string) bool { return strings.HasPrefix(name, rolePrefix) }

// validSubject: a star is no pattern here, and a role needs a name.
func validSubject(s string) bool {
	return s != "" && s != rolePrefix && !strings.Contains(s, "*")
}

// parseDomain reads a domain.
func parseDomain(s string) (domain, bool) {
	if s == "*" {
		return everywhere(), true
	}
	workspace, project, found := strings.Cut(s, "/")
	if !found || workspace == "" || project == "" || strings.Contains(project, "/") ||
		strings.Contains(workspace, "*") || strings.Contains(project, "*") && project != "*" {
		return domain{}, false
	}
	return domain{workspace, project}, true
}

// Covers reports whether a pattern of tools, as rows and conditions have them, covers a tool.
func Covers(pattern, tool string) bool { return lexical.Matches(tool, pattern) }

// parseRow reads a p row; ok is false when it has a fault.
func parseRow(r record, f *faults) (*rule, bool) {
	if len(r.fields) != 6 {
		f.add(r.line, 1, fmt.Sprintf("a p row of %d fields", len(r.fields)), "6: p, subject, domain, tool, when, effect"+commaHint(r, 6))
		return nil, false
	}
	subject, domain, tool, when, effect := r.fields[1], r.fields[2], r.fields[3], r.fields[4], r.fields[5]
	before := len(f.list)
	if !validSubject(subject.text) {
		f.add(r.line, subject.column, "the subject "+parser.Quote(subject.text), wantSubject)
	}
	where, ok := parseDomain(domain.text)
	if !ok {
		f.add(r.line, domain.column, "the domain "+parser.Quote(domain.text), wantDomain)
	}
	if !lexical.ValidTool(tool.text) {
		f.add(r.line, tool.column, "the tool "+parser.Quote(tool.text), wantTool)
	}
	what, ruleName, ok := parseEffect(effect.text)
	if !ok {
		f.add(r.line, effect.column, "the effect "+parser.Quote(effect.text), wantEffect)
	}
	row := Row{File: f.file, Line: r.line, Subject: subject.text, Domain: domain.text, Tool: tool.text,
		When: when.text, Effect: what, Rule: ruleName}
	return &rule{Row: row, place: [1]string{row.Place()}, domain: where}, len(f.list) == before
}

// commaHint says what more fields than a row has mostly come from.
func commaHint(r record, most int) string {
	if len(r.fields) <= most {
		return ""
	}
	return "; a field with a comma stands in quotes"
}

// parseGrant reads a g row; ok is false when it has a fault.
func parseGrant(r record, f *faults) (*grant, bool) {
	if len(r.fields) != 4 {
		f.add(r.line, 1, fmt.Sprintf("a g row of %d fields", len(r.fields)), "4: g, agent or role, role, domain"+commaHint(r, 4))
		return nil, false
	}
	member, role, domain := r.fields[1], r.fields[2], r.fields[3]
	before := len(f.list)
	if !validSubject(member.text) {
		f.add(r.line, member.column, "the member "+parser.Quote(member.text), wantSubject)
	}
	if !isRole(role.text) || !validSubject(role.text) {
		f.add(r.line, role.column, "the role "+parser.Quote(role.text), "a role written role:NAME")
	}
	where, ok := parseDomain(domain.text)
	if !ok {
		f.add(r.line, domain.column, "the domain "+parser.Quote(domain.text), wantDomain)
	}
	return &grant{line: r.line, member: member.text, role: role.text, domainText: domain.text, domain: where}, len(f.list) == before
}

// ParseRow reads a p row as the file writes it. The row has no file and line, so that it equals
// a row of a policy without those. The error is one or more *FileError, of line 1.
func ParseRow(line string) (Row, error) {
	f := &faults{}
	if len(line) > maxLine || !cleanLine(line, 1, f) {
		f.add(1, 1, "a row that no file can hold", "a row as the policy file writes it")
		return Row{}, f.err()
	}
	fields, ok := splitFields(line, 1, f)
	if !ok {
		return Row{}, f.err()
	}
	if fields[0].text != "p" {
		f.add(1, 1, "a row that is not a p row", "p, subject, domain, tool, when, effect")
		return Row{}, f.err()
	}
	parsed, ok := parseRow(record{line: 1, raw: line, fields: fields}, f)
	if !ok {
		return Row{}, f.err()
	}
	return parsed.Content(), nil
}

// Content is the row without its place: equal rows have equal content.
func (r Row) Content() Row {
	r.File, r.Line = "", 0
	return r
}
