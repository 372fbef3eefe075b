package hook

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/callgate/callgate/gateway/hook/window"
)

// Pattern finds texts that must not pass. It is immutable.
type Pattern struct {
	Name string
	expr *regexp.Regexp
	// pieces is the same expression, for texts that come in pieces.
	pieces *window.Expr
	// holds are texts of which each match has one; nil: there is none. Looking for them is much
	// quicker than the expression.
	holds []string
}

// maxExpr bounds an expression of an operator, in bytes.
const maxExpr = 1000

// NewPattern returns a pattern by an expression of RE2.
func NewPattern(name, expr string) (*Pattern, error) {
	if len(expr) > maxExpr {
		return nil, fmt.Errorf("found an expression of %d bytes; expected at most %d", len(expr), maxExpr)
	}
	compiled, err := regexp.Compile(expr)
	if err != nil {
		return nil, fmt.Errorf("found an expression that RE2 does not take; expected one that it does: %w", err)
	}
	pieces, err := window.Compile(expr)
	switch {
	case err != nil:
		return nil, fmt.Errorf("found an expression that cannot be compiled: %w", err)
	case pieces.CanBeEmpty():
		return nil, errors.New(
			"found an expression that matches the empty text; expected one that does not, since it would match everywhere")
	}
	return &Pattern{Name: name, expr: compiled, pieces: pieces}, nil
}

// Matches reports whether it is anywhere in a text.
func (p *Pattern) Matches(text string) bool { return p.maybe(text) && p.expr.MatchString(text) }

// replace replaces all matches in a text.
func (p *Pattern) replace(text string) string {
	if !p.Matches(text) {
		return text
	}
	return p.expr.ReplaceAllLiteralString(text, p.mark())
}

// mark is what stands for a match.
func (p *Pattern) mark() string { return "[redacted:" + p.Name + "]" }

// maybe reports whether a text may have a match.
func (p *Pattern) maybe(text string) bool {
	for _, part := range p.holds {
		if strings.Contains(text, part) {
			return true
		}
	}
	return p.holds == nil
}

// Secrets is the name of all built-in patterns together.
const Secrets = "secrets"

// builtin are the built-in patterns. Each needs a beginning, or a word, that is given out for the
// purpose, so that they find little else. It is read only.
var builtin = []*Pattern{
	// A key whose end is missing is taken to the end of the text.
	secret("private-key", `(?s)-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|\z)`, "PRIVATE KEY"),
	secret("aws-access-key", `(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}`, "AKIA", "ASIA", "ABIA", "ACCA"),
	secret("github-token", `gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{22,}`, "ghp_", "gho_", "ghu_", "ghs_", "ghr_",
		"github_pat_"),
	secret("gitlab-token", `(?:glpat|gldt|glrt|glcbt|glptt|glft|glsoat|glagent|gloas)-[A-Za-z0-9_.-]{20,}`, "gl"),
	secret("slack-token", `xox[abeoprs]-[A-Za-z0-9-]{10,}|xapp-[0-9]-[A-Za-z0-9-]{10,}|hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9/_-]{20,}`, "xox", "xapp-", "hooks.slack.com"),
	secret("stripe-key", `(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{16,}`, "sk_live_", "sk_test_", "rk_live_", "rk_test_"),
	secret("google-key", `AIza[0-9A-Za-z_-]{35}|GOCSPX-[0-9A-Za-z_-]{28}|ya29\.[0-9A-Za-z_-]{20,}`, "AIza", "GOCSPX-", "ya29."),
	secret("openai-key", `\bsk-(?:(?:proj|svcacct|admin)-[A-Za-z0-9_-]{40,}|[A-Za-z0-9]{32,64}\b)`, "sk-"),
	secret("anthropic-key", `sk-ant-[A-Za-z0-9_-]{20,}`, "sk-ant-"),
	secret("jwt", `eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}`, "eyJ"),
	secret("bearer-token", `(?i)\bbearer[ \t]{1,4}(?:[a-z0-9._~+/-]{0,64}[0-9][a-z0-9._~+/-]{15,}|[a-z0-9._~+/-]{15,}[0-9][a-z0-9._~+/-]*)={0,2}|\bauthorization["']?[ \t]{0,4}[:=][ \t]{0,4}["']?(?:bearer|basic|token)[ \t]{1,4}[a-z0-9._~+/-]{8,}={0,2}`),
}

func secret(name, expr string, holds ...string) *Pattern {
	p, err := NewPattern(name, expr)
	if err != nil {
		panic(err) // the tests make each of them
	}
	p.holds = holds
	return p
}

// Builtin returns the built-in patterns of a name: one, or all of them for Secrets; none where there
// is no such name.
func Builtin(name string) []*Pattern {
	if name == Secrets {
		return builtin
	}
	for _, p := range builtin {
		if p.Name == name {
			return []*Pattern{p}
		}
	}
	return nil
}

// BuiltinNames lists the names that Builtin knows.
func BuiltinNames() []string {
	names := []string{Secrets}
	for _, p := range builtin {
		names = append(names, p.Name)
	}
	return names
}
