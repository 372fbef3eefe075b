package lab

import (
	"context"
	"strings"

	"github.com/callgate/callgate/policy"
)

// maxExact is how many exact rows one row may become. Beyond it one row stays, with the
// narrowest patterns that cover its use.
const maxExact = 20

// maxSettled bounds the calls that are known to add nothing.
const maxSettled = 100_000

// Uses gathers which allow rows of a policy calls need, and suggests a narrower policy: rows that no
// call needed become comments, and rows wider than their use become exact ones. Deny rows, rows that
// ask and conditions stay as they are, and nothing is added or widened. It is not safe for concurrent use. Its
// memory is bounded by the rows, not by the calls.
type Uses struct {
	policy  *policy.Policy
	rows    map[int]*use // by line
	settled map[callKey]bool
	members map[string][]string // of roles; nil until it is needed
}

// callKey is a call without its arguments.
type callKey struct{ agent, workspace, project, tool string }

func (k callKey) domain() string { return k.workspace + "/" + k.project }

// use has the calls that one row was needed for.
type use struct {
	exact  map[callKey]bool // the calls, while they are few
	domain string           // the narrowest patterns that cover all calls
	tool   string
}

// NewUses starts with no use.
func NewUses(p *policy.Policy) *Uses {
	return &Uses{policy: p, rows: map[int]*use{}, settled: map[callKey]bool{}}
}

// Add notes a call. Unless all is known that the policy reads of it, its arguments and its past, it is taken to need
// every allow row that may have permitted it.
func (u *Uses) Add(ctx context.Context, r policy.Request, known bool) error {
	key := callKey{r.Agent, r.Workspace, r.Project, r.Tool}
	if u.settled[key] {
		return nil
	}
	rows := u.policy.Matching(r.Agent, r.Workspace, r.Project, r.Tool)
	conditional := false
	for _, row := range rows {
		conditional = conditional || row.When != ""
	}
	if conditional && known {
		d, err := u.policy.Permit(ctx, r)
		if err != nil || !d.Allowed {
			return err
		}
	} else {
		outlook, _, err := u.policy.Foresee(ctx, r)
		if err != nil {
			return err
		}
		if len(u.settled) < maxSettled {
			u.settled[key] = true
		}
		if outlook == policy.WillDeny {
			return nil
		}
	}
	for _, row := range rows {
		if row.Effect != policy.Allow {
			continue
		}
		if known && conditional {
			if met, err := u.policy.Met(ctx, row.Line, r); err != nil || !met {
				continue // a condition that fails does not allow
			}
		}
		u.add(row.Line, key)
	}
	return ctx.Err()
}

func (u *Uses) add(line int, key callKey) {
	of := u.rows[line]
	if of == nil {
		of = &use{exact: map[callKey]bool{}, domain: key.domain(), tool: key.tool}
		u.rows[line] = of
	}
	of.domain = commonDomain(of.domain, key)
	of.tool = commonTool(of.tool, key.tool)
	if len(of.exact) <= maxExact {
		of.exact[key] = true
	}
}

// commonDomain widens a domain until it covers a call's.
func commonDomain(pattern string, key callKey) string {
	switch {
	case pattern == key.domain() || pattern == "*":
		return pattern
	case strings.HasPrefix(pattern, key.workspace+"/"):
		return key.workspace + "/*"
	}
	return "*"
}

// commonTool widens a pattern of tools until it covers a tool.
func commonTool(pattern, tool string) string {
	if pattern == tool || pattern == "*" {
		return pattern
	}
	prefix, isPrefix := strings.CutSuffix(pattern, ".*")
	if !isPrefix {
		prefix = parent(pattern)
	}
	for prefix != "" && !strings.HasPrefix(tool, prefix+".") {
		prefix = parent(prefix)
	}
	if prefix == "" {
		return "*"
	}
	return prefix + ".*"
}

// parent is a name without its last part; "" has none.
func parent(name string) string {
	if dot := strings.LastIndexByte(name, '.'); dot > 0 {
		return name[:dot]
	}
	return ""
}
