package configs

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"time"

	"github.com/callgate/callgate/configs/document"
	"github.com/callgate/callgate/internal/netx"
	"github.com/callgate/callgate/internal/similar"
	"github.com/callgate/callgate/policy"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store/approval"
)

// Approvals say by which rules people approve calls that the policy asks them for.
type Approvals struct {
	Rules approval.Rules `key:"rules"`
	// Wait is how long a request waits for people whose caller cannot be told later.
	Wait time.Duration `key:"wait" of:"how long a request waits for people" range:"0s..5m"`
	// URL is the admin listener as people reach it, which links to approvals begin with; empty:
	// there are no links.
	URL string `key:"url"`
	// Notify is the endpoint that gets notices of approvals; nil: none.
	Notify *Notify `key:"notify"`
}

const (
	defaultWait   = time.Minute
	defaultWithin = 30 * time.Minute
)

// readApprovals reads the approvals file.
func readApprovals(root document.Node) Approvals {
	a := Approvals{Rules: approval.Rules{}, Wait: defaultWait}
	root.Object(document.Fields(&a,
		document.Field("rules", func(n document.Node) {
			n.Members("rules", func(key, value document.Node) {
				key.Matching("the name of a rule", policy.RuleNamePattern)
				if !policy.IsRuleName(key.Value) {
					key.Fail("found the rule %s; expected a name of up to 64 letters, digits, _ and -", key.Excerpt())
					return
				}
				a.Rules[key.Value] = readRule(key.Value, value)
			})
		}),
		document.Field("url", func(n document.Node) { readApprovalsURL(n, &a.URL) }),
		document.Field("notify", func(n document.Node) { a.Notify = readNotify(n) }),
	)...)
	return a
}

// readApprovalsURL reads the URL that links to approvals begin with.
func readApprovalsURL(n document.Node, into *string) {
	readBaseURL(n, "the admin listener as people reach it", into)
	if u, err := url.Parse(*into); err == nil && u.Scheme == "http" && !netx.IsLoopbackHost(u.Hostname()) {
		n.Warn("links to approvals are without TLS: anyone who can read what people send there can vote in their place")
	}
}

// readRule reads one rule. Every key is optional.
func readRule(name string, n document.Node) approval.Rule {
	r := approval.Rule{Name: name, Approve: 1, Within: defaultWithin, By: approval.ByApprovers}
	ok := n.Object(document.Fields(&r,
		document.Field("remember", func(n document.Node) {
			r.Remember = map[approval.Scope]time.Duration{}
			var scopes []document.FieldReader
			for _, scope := range []approval.Scope{approval.Same, approval.InThread, approval.AnyCall} {
				scopes = append(scopes, document.Field(string(scope), func(n document.Node) {
					var most time.Duration
					if n.Span("how long a yes may stand", approval.MinWithin, approval.MaxRemember, &most) {
						r.Remember[scope] = most
					}
				}))
			}
			n.Object(scopes...)
		}),
		document.Field("hint", func(n document.Node) {
			if n.Text("a hint for the people who decide", &r.Hint) && len(r.Hint) > approval.MaxHint {
				n.Fail("found a hint of %d bytes; expected at most %d", len(r.Hint), approval.MaxHint)
			}
		}),
	)...)
	if ok && r.By == approval.ByCaller && r.Approve > 1 {
		n.At("/approve").Fail("found %d with by: caller; expected 1, since a caller is one person", r.Approve)
	}
	return r
}

// checkApprovals holds the rules of approval against the policy, the principals and the mode
// of authentication. A row that asks by a rule that is not there is a fault: nobody could
// ever approve its calls.
func (l *loader) checkApprovals(file, principals document.Node, c *Config) {
	if len(l.report.Faults) > 0 || c.Policy == nil {
		return
	}
	names := slices.Sorted(maps.Keys(c.Approvals.Rules))
	used := map[string]bool{}
	for _, row := range c.Policy.AskingRows() {
		used[row.Rule] = true
		if slices.Contains(names, row.Rule) {
			continue
		}
		expected := "the name of a rule of the approvals file" + similar.DidYouMean(row.Rule, names)
		if c.ApprovalsFile == "" {
			expected = "the key approvals in the main file, which names a file with that rule"
		}
		l.report.Add(&document.Fault{File: row.File, Line: row.Line, Message: "found ask:" + row.Rule + "; expected " + expected})
	}
	able := map[string]int{} // how many principals may approve by a rule
	for i, p := range c.Principals {
		for j, rule := range p.Approves {
			able[rule]++
			if !slices.Contains(names, rule) {
				principals.At(fmt.Sprintf("/principals/%d/approves/%d", i, j)).Warn(
					"%q may approve by the rule %q, which is not there%s", p.Name, rule, similar.DidYouMean(rule, names))
			}
		}
	}
	for _, name := range names {
		rule, at := c.Approvals.Rules[name], file.At(refusal.Pointer("rules", name))
		if rule.Approve > 1 && c.Auth.Mode == AuthNone {
			file.At(refusal.Pointer("rules", name, "approve")).Fail(
				"found %d with auth.mode none; expected 1, or another auth.mode, since people cannot be told apart without credentials",
				rule.Approve)
		}
		if !used[name] {
			at.Warn("no row of the policy asks by the rule %q", name)
		} else if c.Auth.Mode == AuthKeys && rule.By == approval.ByApprovers && able[name] < rule.Approve {
			at.Warn("the rule %q needs %d approvers but only %d may approve", name, rule.Approve, able[name])
		}
	}
}
