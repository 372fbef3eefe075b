package policylint

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/callgate/callgate/history"
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
		l.past(r, a.Past)
		if !a.ReadsArguments && a.Past.None() {
			l.constant(r)
			continue
		}
		if command := openCommand(r); command != "" {
			l.row(CommandPart, r, "the condition leaves a part of args.%s open: a shell runs what stands there, such as another command after a semicolon. "+
				"Describe the whole command with matches('^…$'), without . and without classes that take ; | & < > $ or line ends, as \\s does", command)
			continue
		}
		if path := condition.ReadConjunction(r.When).Contradiction(); path != "" {
			l.row(NeverTrue, r, "no value of args.%s meets this condition", path)
			continue
		}
		if versions := tools[r.Tool]; len(versions) == 1 {
			if optional := a.OptionalMembers(versions[0]); len(optional) > 0 {
				l.row(Optional, r, "%s may be absent, and then the condition fails: %s",
					"args."+strings.Join(optional, ", args."), onFailure[r.Effect])
			}
		}
	}
}

// atLeastOne is a condition that counts calls, and is met by one.
var atLeastOne = regexp.MustCompile(`\b(thread|caller)\.calls\([^()]*\)\s*(>\s*0|>=\s*1|!=\s*0)([^0-9.]|$)`)

// past finds conditions by which something must have come first, and that are met, or refused, otherwise than it looks.
func (l *linter) past(r policy.Row, reads condition.Reads) {
	if r.Effect != policy.Allow {
		return
	}
	if met := atLeastOne.FindString(r.When); met != "" && !strings.Contains(r.When, "||") {
		l.row(CountsFirst, r, "calls counts what runs, what has failed, and this call itself, so one that has not ended meets this: for what must come first, ask thread.results")
	}
	for _, t := range reads.Terms {
		if t.Kind == history.Results {
			l.row(SameAnswer, r, "a model that calls %s and this tool in one answer is refused: results are those from before the answer",
				t.Tool)
			return
		}
	}
}

// labelRead is a question for one label.
var labelRead = regexp.MustCompile(`['"]([^'"]*)['"]\s+in\s+thread\.labels\b`)

// labels finds labels that no condition reads or nothing adds, and tools that act once and that no label bounds.
func (l *linter) labels() {
	made, read, bounded := map[string]bool{}, map[string]bool{}, []policy.Row{}
	for _, label := range l.Threads.DefaultLabels {
		made[label] = true
	}
	for _, e := range l.Tools.Entries() {
		for _, label := range e.Labels() {
			made[label.Name] = true
		}
	}
	for _, s := range l.Servers {
		for _, label := range s.Labels {
			made[label] = true
		}
	}
	for _, h := range l.Hooks.All() {
		for _, label := range h.Labels {
			made[label] = true
		}
	}
	for _, r := range l.Policy.Rows() {
		if a, err := condition.Analyze(r.When); r.When == "" || err != nil || !a.Past.Labels {
			continue
		}
		bounded = append(bounded, r)
		asked := labelRead.FindAllStringSubmatch(r.When, -1)
		for _, label := range asked {
			read[label[1]] = true
		}
		if len(asked) < strings.Count(r.When, "thread.labels") { // otherwise than by name
			for _, label := range l.Threads.Labels {
				read[label] = true
			}
		}
	}
	for _, label := range l.Threads.Labels {
		if !read[label] {
			l.add(LabelUnread, l.Files[0], 0, "no condition reads the label %s", label)
		}
		if !made[label] {
			l.add(LabelUnadded, l.Files[0], 0, "no tool, server, hook or default adds the label %s, so no thread has it", label)
		}
	}
	if len(l.Threads.Labels) == 0 {
		return
	}
	for _, tool := range l.tools {
		if e, _ := l.Tools.Lookup(tool); e.Effect() == actsOnce &&
			!slices.ContainsFunc(bounded, func(r policy.Row) bool { return policy.Covers(r.Tool, tool) }) {
			l.add(Untainted, l.PolicyFile, 0, "%s acts once, and no row about it reads the labels of its thread", tool)
		}
	}
}

// commandName is a member of args that holds a command, or an element of one.
var commandName = regexp.MustCompile(`^(commands?|cmd|script|action)(\[|$)`)

// openCommand names an argument with a command of which a row that lets it pass describes a part only.
func openCommand(r policy.Row) string {
	if r.Effect == policy.Deny {
		return ""
	}
	texts, err := condition.DescribedTexts(r.When, describesAll)
	if err != nil {
		return "" // the configuration was loaded: there is none
	}
	for _, text := range slices.Sorted(maps.Keys(texts)) {
		if texts[text] == condition.InPart && commandName.MatchString(text) {
			return text
		}
	}
	return ""
}

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
