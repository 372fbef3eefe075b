package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/callgate/callgate/app"
	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/policy"
)

// WithConfig has a command load the configuration of its flag --config before it runs.
func (e env) WithConfig(c *cobra.Command, run func(ctx context.Context, loaded *configs.Config, args []string) error) *cobra.Command {
	return withLoaded(c, e.Load, run)
}

// WithUntested is WithConfig for a command that only looks at the policy: also at one that breaks
// its own tests.
func (e env) WithUntested(c *cobra.Command, run func(ctx context.Context, loaded *configs.Config, args []string) error) *cobra.Command {
	return withLoaded(c, e.LoadUntested, run)
}

func withLoaded(c *cobra.Command, load func(file string) (*configs.Config, error),
	run func(context.Context, *configs.Config, []string) error) *cobra.Command {
	var file string
	configFlag(c, &file)
	c.RunE = func(c *cobra.Command, args []string) error {
		loaded, err := load(file)
		if err != nil {
			return err
		}
		return run(c.Context(), loaded, args)
	}
	return c
}

// Load reads the configuration that Locate finds, and says its warnings on standard error.
func (e env) Load(flag string) (*configs.Config, error) { return e.loadBy(configs.Load, flag) }

// LoadUntested is Load that does not run the tests of the policy.
func (e env) LoadUntested(flag string) (*configs.Config, error) {
	return e.loadBy(configs.LoadUntested, flag)
}

func (e env) loadBy(read func(file string) (*configs.Config, error), flag string) (*configs.Config, error) {
	file, err := e.Locate(flag)
	if err != nil {
		return nil, err
	}
	return e.Warned(read(file))
}

// Warned says the warnings of a configuration that was loaded, which must ask for nothing that this
// program does not have.
func (e env) Warned(c *configs.Config, err error) (*configs.Config, error) {
	if err == nil {
		err = c.CheckParts(app.Has)
	}
	if err != nil {
		return nil, err
	}
	for _, w := range c.Warnings {
		fmt.Fprintf(e.Stderr, "warning: %v\n", w)
	}
	return c, nil
}

// maxNamed is how many projects a message names.
const maxNamed = 5

// requestIn is a request of an agent in the project of a flag, WORKSPACE/PROJECT, or else in that
// of the configuration, if the agent acts there, or in the only one that lists the agent. It has no tool yet, and its
// arguments are not known.
func requestIn(c *configs.Config, agent, project string) (policy.Request, error) {
	r := policy.Request{Agent: agent, Workspace: c.Defaults.Workspace, Project: c.Defaults.Project}
	if project != "" {
		workspace, name, ok := strings.Cut(project, "/")
		if !ok || workspace == "" || name == "" || strings.Contains(name, "/") {
			return r, fmt.Errorf("--project is %q; expected workspace/project", project)
		}
		r.Workspace, r.Project = workspace, name
		return r, nil
	}
	places := c.Workspaces.Places(agent)
	_, known := c.Workspaces[r.Workspace].Projects[r.Project]
	if known && len(places) == 0 || slices.Contains(places, r.Workspace+"/"+r.Project) {
		return r, nil
	}
	if len(places) == 0 {
		places = c.Workspaces.Places("")
	}
	switch len(places) {
	case 0:
		return r, errors.New("the configuration has no project")
	case 1:
		r.Workspace, r.Project, _ = strings.Cut(places[0], "/")
		return r, nil
	}
	return r, fmt.Errorf("which project? Name one: --project %s", strings.Join(places[:min(len(places), maxNamed)], ", --project "))
}
