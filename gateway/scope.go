package gateway

import (
	"context"
	"errors"
	"slices"

	"github.com/callgate/callgate/gateway/refuse"
	"github.com/callgate/callgate/identity"
	"github.com/callgate/callgate/policy"
	"github.com/callgate/callgate/policy/boundary"
	"github.com/callgate/callgate/refusal"
)

// scope is the workspace and project of a request, looked up once, before any check. The
// errors are reported by the checks of their stages, after the limits were charged.
type scope struct {
	resolved     bool
	place        *place          // nil where the subject has none
	workspaceErr error           // the workspace does not exist, or is not the caller's
	projectErr   error           // the same of the project, or it does not list the agent
	project      *policy.Project // nil with an error
}

// resolve looks up the workspace and the project of a subject.
func (s *Config) resolve(subject Subject, p *identity.Principal) scope {
	found := scope{resolved: true, place: s.places[subject]}
	if found.place != nil {
		found.project = found.place.project
	} else {
		_, found.workspaceErr = s.Workspaces.Workspace(subject.Workspace)
		found.project, found.projectErr = s.Workspaces.Project(subject.Agent, subject.Workspace, subject.Project)
	}
	if p != nil && subject.Workspace != p.Workspace {
		found.workspaceErr = refusal.New(refusal.WorkspaceMismatch, "This workspace is not the caller's. The call cannot be made here.")
	}
	if p != nil && !slices.Contains(p.Projects, subject.Project) {
		found.project, found.projectErr = nil, refusal.New(refusal.ProjectMismatch, "This project is not the caller's. The call cannot be made here.")
	}
	return found
}

// entered reports whether the call acts in the project that it names.
func (s *scope) entered() bool {
	return s.resolved && s.workspaceErr == nil && s.projectErr == nil
}

var errNoScope = errors.New("the scope of the call was not resolved")

// checkWorkspace is the stage workspace: it exists, and is the principal's.
func checkWorkspace(_ context.Context, c *Call) error {
	if !c.scope.resolved {
		return errNoScope
	}
	return c.scope.workspaceErr
}

// checkProject is the first step of the stage project: it is the principal's, is
// in the workspace, and lists the agent.
func checkProject(_ context.Context, c *Call) error {
	if !c.scope.resolved {
		return errNoScope
	}
	c.project = c.scope.project
	return c.scope.projectErr
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
	switch {
	case found.workspaceErr != nil:
		return boundary.Lists{}, found.workspaceErr
	case found.projectErr != nil:
		return boundary.Lists{}, found.projectErr
	}
	return found.project.Bounds(), nil
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
