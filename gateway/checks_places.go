package gateway

import (
	"context"
	"errors"
	"slices"

	"github.com/callgate/callgate/gateway/refuse"
	"github.com/callgate/callgate/gateway/violations"
	"github.com/callgate/callgate/policy"
	"github.com/callgate/callgate/policy/boundary"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/registry"
	"github.com/callgate/callgate/registry/schema"
)

// checkWorkspace is the second step of the stage workspace: it exists, and is the principal's.
func checkWorkspace(_ context.Context, c *Call) error { return c.scope.Workspace() }

// namesNoProject reports whether the caller has several projects, and the request names none. Without credentials
// they are those of its agent.
func (c *judgement) namesNoProject() bool {
	several := len(c.config.places.ofAgent[c.subject.Agent]) > 1
	if c.principal != nil {
		several = len(c.principal.Projects) > 1
	}
	return c.subject.Project == "" && several
}

// checkProjectNamed is the first step of the stage workspace: the request names its project. It stands
// before the policy, which would deny every tool without one.
func checkProjectNamed(context.Context, *Call) error {
	return refuseNoProject("the call cannot be made here")
}

func refuseNoProject(so string) error {
	return refusal.New(refusal.ProjectRequired, "The caller has several projects, and the request names none, so "+so+
		". The application must name its project in the request, in the header Callgate-Project, or with the --project flag of a command.")
}

// checkProject is the first step of the stage project: it is the principal's, is
// in the workspace, and lists the agent.
func checkProject(_ context.Context, c *Call) (err error) {
	c.project, err = c.scope.Project()
	return err
}

// reachOf tells whether the agent could ever use a tool in the workspace and project of the call.
func (c *judgement) reachOf(tool *registry.Entry) (policy.Reach, error) {
	return c.config.places.Reach(&c.scope, c.subject, tool)
}

// canReach reports whether the agent could ever use a tool.
func (c *judgement) canReach(tool string) (bool, error) {
	reach, err := c.config.places.ReachByName(c.subject, tool)
	return err == nil && reach != policy.Never, err
}

// outsidePrincipal reports whether a request names a workspace or a project that is not
// its principal's.
func (c *judgement) outsidePrincipal() bool {
	p, s := c.principal, c.subject
	return p != nil && (s.Workspace != "" && s.Workspace != p.Workspace || s.Project != "" && !slices.Contains(p.Projects, s.Project))
}

// Bounds are the boundaries of the project that the request acts in, by the configuration of now. The
// error is a *refusal.Error.
func (a *Admission) Bounds() (boundary.Lists, error) {
	if a.kernel == nil {
		return boundary.Lists{}, refuse.NotAdmitted()
	}
	found := a.config().resolve(a.Subject(), nil)
	if err := found.Workspace(); err != nil {
		return boundary.Lists{}, err
	}
	project, err := found.Project()
	if err != nil {
		return boundary.Lists{}, err
	}
	return project.Bounds(), nil
}

// PlaceOf returns the project that a folder lies in: that with the innermost root around it. Where it lies in none, or in
// several at once, both names are empty.
func (k *Kernel) PlaceOf(folder string) (workspace, project string) {
	deepest := 0
	for inWorkspace, w := range k.config.Load().Workspaces {
		for name, p := range w.Projects {
			bounds := p.Bounds()
			for _, root := range bounds.Roots {
				bounds.Roots = []string{root}
				if _, err := bounds.Resolve(folder); err != nil || len(root) < deepest {
					continue
				}
				if len(root) == deepest && (workspace != inWorkspace || project != name) {
					workspace, project = "", ""
					continue
				}
				deepest, workspace, project = len(root), inWorkspace, name
			}
		}
	}
	return workspace, project
}

// InProject reports whether the request may act in the project that it names, by the configuration of
// now: it exists, is the principal's, and lists the agent, if the request has one.
func (a *Admission) InProject() bool {
	if a.kernel == nil || a.outsidePrincipal {
		return false
	}
	subject := a.Subject()
	project, known := a.config().Workspaces[subject.Workspace].Projects[subject.Project]
	return known && (subject.Agent == "" || slices.Contains(project.Agents, subject.Agent))
}

// checkBoundary is the second step: what the schema marks with x-boundary lies
// within what the project lists, and so do the folders that answers name.
func checkBoundary(_ context.Context, c *Call) error {
	if c.project == nil {
		return errors.New("no project was entered")
	}
	bounds := c.project.Bounds()
	if bounds.Start = c.request.Folder; bounds.Start != "" {
		if _, err := bounds.Resolve(bounds.Start); err != nil && len(bounds.Roots) > 0 {
			return refusal.New(refusal.BoundaryViolation, "The folder that this call is made in is outside this project.").WithCause(err)
		}
	}
	var values []schema.BoundaryValue
	if c.tool.HasBoundaries() && !c.tool.WithinJSON(c.parsed.Arguments, func(kind, value string) bool {
		return bounds.Within(kind, value) == nil
	}) {
		values = c.tool.Boundaries(c.arguments())
	}
	return violations.OfBoundary(values, c.elicited.answers, bounds, c.source())
}
