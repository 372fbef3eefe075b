package policy

import (
	"fmt"
	"strings"

	"github.com/callgate/callgate/policy/condition"
	"github.com/callgate/callgate/policy/internal/lexical"
)

// rolePrefix begins the name of every role and of no agent.
const rolePrefix = "role:"

// Effect is what a row does to a request that it matches.
type Effect string

// The two effects, as the file spells them.
const (
	Allow Effect = "allow"
	Deny  Effect = "deny"
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
}

// String names the row for an operator: file:line and its fields.
func (r Row) String() string {
	return fmt.Sprintf("%s:%d: %s %s in %s, tool %s", r.File, r.Line, r.Effect, r.Subject, r.Domain, r.Tool)
}

// rule is a row made ready for evaluation.
type rule struct {
	Row
	domain    domain
	condition *condition.Condition // nil: always
}

// grant is one g row.
type grant struct {
	line         int
	member, role string
	written      string
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

const (
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

// validTool reports whether s is a tool's name or one of the two patterns.
func validTool(s string) bool {
	if s == "*" {
		return true
	}
	if prefix, found := strings.CutSuffix(s, ".*"); found {
		s = prefix
	}
	return s != "" && !strings.Contains(s, "*")
}

// matches reports whether a name of a tool or of a domain equals a pattern or is covered by it.
func matches(name, pattern string) bool {
	if pattern == "*" || pattern == name {
		return true
	}
	prefix, found := strings.CutSuffix(pattern, "*")
	return found && len(name) > len(prefix) && strings.HasPrefix(name, prefix)
}

// parseRow reads a p row; ok is false when it has a fault.
func parseRow(r record, f *faults) (*rule, bool) {
	if len(r.fields) != 6 {
		f.add(r.line, 1, fmt.Sprintf("a p row of %d fields", len(r.fields)), "6: p, subject, domain, tool, when, effect")
		return nil, false
	}
	subject, domain, tool, when, effect := r.fields[1], r.fields[2], r.fields[3], r.fields[4], r.fields[5]
	before := len(f.list)
	if !validSubject(subject.text) {
		f.add(r.line, subject.column, "the subject "+lexical.Quote(subject.text), wantSubject)
	}
	where, ok := parseDomain(domain.text)
	if !ok {
		f.add(r.line, domain.column, "the domain "+lexical.Quote(domain.text), wantDomain)
	}
	if !validTool(tool.text) {
		f.add(r.line, tool.column, "the tool "+lexical.Quote(tool.text), wantTool)
	}
	if e := Effect(effect.text); e != Allow && e != Deny {
		f.add(r.line, effect.column, "the effect "+lexical.Quote(effect.text), "allow or deny, spelled so")
	}
	row := Row{File: f.file, Line: r.line, Subject: subject.text, Domain: domain.text, Tool: tool.text,
		When: when.text, Effect: Effect(effect.text)}
	return &rule{Row: row, domain: where}, len(f.list) == before
}

// parseGrant reads a g row; ok is false when it has a fault.
func parseGrant(r record, f *faults) (*grant, bool) {
	if len(r.fields) != 4 {
		f.add(r.line, 1, fmt.Sprintf("a g row of %d fields", len(r.fields)), "4: g, agent or role, role, domain")
		return nil, false
	}
	member, role, domain := r.fields[1], r.fields[2], r.fields[3]
	before := len(f.list)
	if !validSubject(member.text) {
		f.add(r.line, member.column, "the member "+lexical.Quote(member.text), wantSubject)
	}
	if !isRole(role.text) || !validSubject(role.text) {
		f.add(r.line, role.column, "the role "+lexical.Quote(role.text), "a role written role:NAME")
	}
	where, ok := parseDomain(domain.text)
	if !ok {
		f.add(r.line, domain.column, "the domain "+lexical.Quote(domain.text), wantDomain)
	}
	return &grant{line: r.line, member: member.text, role: role.text, written: domain.text, domain: where}, len(f.list) == before
}
