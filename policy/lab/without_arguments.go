package lab

import (
	"bytes"
	"context"
	"reflect"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/parser"
)

// Reasons why a decision is not judged again.
const (
	NoArguments = "the log does not keep arguments (audit.record: digest)"
	Redacted    = "secret arguments are not in the log"
	Unreadable  = "the arguments cannot be read"
	Versions    = "the tool has several versions, and the log does not say which was asked for"
	NeedsPast   = "the thread's history is not in the log"
)

// side is one of the configurations, with what was judged without arguments before.
type side struct {
	config *gateway.Config
	judge  *Judge
	known  map[class]foreseen
	past   *threads // nil: no condition asks it
}

// class is what a judgement without arguments depends on.
type class struct{ agent, workspace, project, tool string }

// foreseen is a judgement without arguments; known is false where it depends on them.
type foreseen struct {
	Judgement
	known bool
}

// maxClasses bounds the judgements that are kept.
const maxClasses = 100_000

func newSide(c *gateway.Config, log Log) (*side, error) {
	judge, err := NewJudge(c)
	if err != nil {
		return nil, err
	}
	s := &side{config: c, judge: judge, known: map[class]foreseen{}}
	if judge.kernel.ReadsPast() {
		s.past = newThreads(judge.kernel, log)
	}
	return s, nil
}

// add adds a record to the past of its thread.
func (s *side) add(r *audit.Record) error {
	if s == nil || s.past == nil {
		return nil
	}
	return s.past.add(r, s.arguments(r))
}

// arguments are those of a recorded call; nil: nobody has them.
func (s *side) arguments(r *audit.Record) map[string]any {
	if s.hides(r) != "" {
		return nil
	}
	value, _ := parser.ReadValue(r.Arguments, s.config.Output.MaxDepth)
	arguments, _ := value.(map[string]any)
	return arguments
}

// decide judges a recorded call. Where its arguments are hidden, for the reason given, all but
// the schema and the boundaries is judged. The reason is why it cannot be judged; it is ""
// where it was.
func (s *side) decide(ctx context.Context, r *audit.Record, hidden string) (Judgement, string, error) {
	if hidden == "" {
		var past *gateway.Assumed
		if s.past != nil {
			before, err := s.past.past(r, s.arguments(r))
			if err != nil {
				return Judgement{}, "", err
			}
			past = s.judge.kernel.AssumePast(before)
		}
		j := s.judgeVersion(ctx, r, "", past)
		if j.NeedsPast {
			return Judgement{}, NeedsPast, ctx.Err()
		}
		if s.hasLowerVersion(r) {
			// The call may have asked for it, or been made when it was the highest.
			if lower := s.judgeVersion(ctx, r, r.ToolVersion, past); lower.Verdict != j.Verdict || lower.Code != j.Code {
				return Judgement{}, Versions, ctx.Err()
			}
		}
		return j, "", ctx.Err()
	}
	at := class{r.Agent, r.Workspace, r.Project, r.Tool}
	k, seen := s.known[at]
	if !seen {
		var err error
		if k.Judgement, k.known, err = s.judge.Foresee(ctx,
			Call{Agent: at.agent, Workspace: at.workspace, Project: at.project, Tool: at.tool}); err != nil {
			return Judgement{}, "", err
		}
		if len(s.known) < maxClasses {
			s.known[at] = k
		}
	}
	if !k.known {
		return Judgement{}, hidden, nil
	}
	return k.Judgement, "", nil
}

// judgeVersion judges a recorded call of a version of its tool; "" is the highest.
func (s *side) judgeVersion(ctx context.Context, r *audit.Record, version string, past *gateway.Assumed) Judgement {
	return s.judge.Judge(ctx, Call{Agent: r.Agent, Workspace: r.Workspace, Project: r.Project, Tool: r.Tool, Version: version,
		Arguments: r.Arguments, Past: past})
}

// hasLowerVersion reports whether the recorded version of a tool is still there, and is not the
// highest.
func (s *side) hasLowerVersion(r *audit.Record) bool {
	recorded, is := s.config.Tools.LookupVersion(r.Tool, r.ToolVersion)
	highest, _ := s.config.Tools.Lookup(r.Tool)
	return is && recorded != highest
}

// hides says why the arguments of a recorded call cannot be judged; "" where they can.
func (s *side) hides(r *audit.Record) string {
	if len(r.Arguments) == 0 {
		return NoArguments
	}
	value, err := parser.ReadValue(r.Arguments, s.config.Output.MaxDepth)
	if _, isObject := value.(map[string]any); err != nil || !isObject {
		return Unreadable
	}
	if bytes.Contains(r.Arguments, []byte(`"[redacted]"`)) {
		return Redacted
	}
	return ""
}

// sameSchema reports whether both sides have the same schema for a tool.
func (s *side) sameSchema(other *side, tool string) bool {
	mine, here := s.config.Tools.Lookup(tool)
	theirs, there := other.config.Tools.Lookup(tool)
	return here && there && bytes.Equal(mine.ClosedSchema(), theirs.ClosedSchema())
}

// sameBounds reports whether both sides have the same boundaries in a project.
func (s *side) sameBounds(other *side, r *audit.Record) bool {
	mine, err := s.config.Workspaces.Project(r.Agent, r.Workspace, r.Project)
	if err != nil {
		return false
	}
	theirs, err := other.config.Workspaces.Project(r.Agent, r.Workspace, r.Project)
	return err == nil && reflect.DeepEqual(mine, theirs)
}

// bounded reports whether arguments of a tool stand within boundaries.
func (s *side) bounded(tool string) bool {
	entry, registered := s.config.Tools.Lookup(tool)
	return !registered || entry.HasBoundaries()
}
