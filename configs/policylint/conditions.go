package policylint

import (
	"regexp"
	"slices"
	"strings"

	"github.com/callgate/callgate/policy"
	"github.com/callgate/callgate/policy/condition"
)

// maxNames bounds the combinations of agent, project and tool for which a condition that reads
// nothing else is evaluated.
const maxNames = 10_000

// conditions finds conditions that cannot be true, that read no argument, or that read one which
// may be absent.
func (l *linter) conditions() {
	tools := map[string][]condition.Tool{}
	for _, e := range l.Tools.Entries() {
		tools[e.Name()] = append(tools[e.Name()], condition.Tool{Name: e.Name(), InputSchema: e.AuthoredSchema()})
	}
	for _, r := range l.Policy.Rows() {
		if r.When == "" {
			continue
		}
		a, err := condition.Analyze(r.When)
		if err != nil {
			continue // the configuration was loaded: there is none
		}
		if !a.ReadsArguments && !a.ReadsPast {
			l.constant(r)
			continue
		}
		if r.Effect != policy.Deny && commandPart.MatchString(r.When) && !strings.Contains(r.When, ".matches(") {
			l.row(CommandPart, r, "the condition looks at a part of a command: a shell runs what comes before or behind it, such as another command after a semicolon. "+
				"Describe the whole command, with matches('^…$')")
			continue
		}
		if path := condition.ReadConjunction(r.When).Contradiction(); path != "" {
			l.row(NeverTrue, r, "no value of args.%s meets this condition", path)
			continue
		}
		if versions := tools[r.Tool]; len(versions) == 1 {
			if optional := a.OptionalMembers(versions[0]); len(optional) > 0 {
				l.row(Optional, r, "%s may be absent, and then the condition fails: %s", "args."+strings.Join(optional, ", args."), onFailure[r.Effect])
			}
		}
	}
}

// commandPart is a condition that compares a part of an argument that holds a command.
var commandPart = regexp.MustCompile(`(?s)\bargs\.(commands?|cmd|script|action)\b.*\.(startsWith|endsWith|contains)\(`)

// onFailure says what a row does whose condition fails.
var onFailure = map[policy.Effect]string{
	policy.Allow: "an allow row then does not allow",
	policy.Deny:  "a deny row then denies",
	policy.Ask:   "a row that asks then asks, and does not permit",
}

// constant judges a condition that reads no argument.
func (l *linter) constant(r policy.Row) {
	met, combinations := l.metSomewhere(r)
	switch {
	case combinations == 0: // the row is idle
	case !met && combinations <= maxNames:
		l.row(NeverTrue, r, "the condition is true for no agent, project and tool that this row matches")
	default:
		l.row(Constant, r, "the condition reads no argument: the row's own fields can say the same")
	}
}

// metSomewhere evaluates a condition for the agents, projects and tools that its row matches,
// until it is met, and says how many combinations it has looked at.
func (l *linter) metSomewhere(r policy.Row) (met bool, combinations int) {
	isRow := func(m *policy.Row) bool { return m.Line == r.Line }
	for _, at := range l.places {
		for _, tool := range l.tools {
			request := at.request(tool)
			if !r.MayMatch(request) || !slices.ContainsFunc(l.Policy.Matching(at.agent, at.workspace, at.project, tool), isRow) {
				continue
			}
			combinations++
			met, err := l.Policy.Met(l.ctx, r.Line, request)
			if met && err == nil || combinations > maxNames {
				return met && err == nil, combinations
			}
		}
	}
	return false, combinations
}
