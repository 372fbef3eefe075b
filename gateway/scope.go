package gateway

import (
	"errors"
	"slices"

	"github.com/callgate/callgate/identity"
	"github.com/callgate/callgate/policy"
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

// Resolve looks up the workspace and the project of a subject, for a caller; nil if no credentials are
// required.
func (p *places) Resolve(subject Subject, caller *identity.Principal) scope {
	found := scope{resolved: true, place: p.of[subject]}
	if found.place != nil {
		found.project = found.place.project
	} else {
		_, found.workspaceErr = p.workspaces.Workspace(subject.Workspace)
		found.project, found.projectErr = p.workspaces.Project(subject.Agent, subject.Workspace, subject.Project)
	}
	if caller != nil && subject.Workspace != caller.Workspace {
		found.workspaceErr = refusal.New(refusal.WorkspaceMismatch, "This workspace is not the caller's. The call cannot be made here.")
	}
	if caller != nil && !slices.Contains(caller.Projects, subject.Project) {
		found.project, found.projectErr = nil,
			refusal.New(refusal.ProjectMismatch, "This project is not the caller's. The call cannot be made here.")
	}
	return found
}

// Entered reports whether the call acts in the project that it names.
func (s *scope) Entered() bool {
	return s.resolved && s.workspaceErr == nil && s.projectErr == nil
}

var errNoScope = errors.New("the scope of the call was not resolved")

// Workspace returns an error if the workspace does not exist, or is not the caller's.
func (s *scope) Workspace() error {
	if !s.resolved {
		return errNoScope
	}
	return s.workspaceErr
}

// Project returns the project, or an error if it does not exist, is not the caller's, or does not list
// the agent.
func (s *scope) Project() (*policy.Project, error) {
	if !s.resolved {
		return nil, errNoScope
	}
	return s.project, s.projectErr
}
