package app

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/configs/reload"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/faces/admin"
	"github.com/callgate/callgate/gateway/runs"
	"github.com/callgate/callgate/gateway/server"
	"github.com/callgate/callgate/internal/cli"
	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/ratelimit/budget"
)

// operators is the admin API over a runtime.
type operators struct {
	runtime *Runtime
	watch   *reload.Watcher
	health  func() admin.Health
	pools   func() []server.PoolUse
	runs    *runs.Log
	version string
	loaded  atomic.Pointer[configs.Config] // the configuration in force
}

// follow keeps the configuration that is in force.
func (o *operators) follow(_ context.Context, c *configs.Config, _ *gateway.Config) (change, error) {
	return change{commit: func() { noteTools(o.runtime.changes, o.loaded.Swap(c), c) }, abort: doNothing}, nil
}

// DescribeAdminAPI returns the description of the admin API in OpenAPI 3.1, indented.
func DescribeAdminAPI() ([]byte, error) {
	api := admin.New(admin.Options{})
	api.Mount((&admin.Sources{}).Endpoints()...)
	api.Mount((&admin.Usage{}).Endpoints()...)
	api.Mount((&admin.Approvals{}).Endpoints()...)
	api.Mount((&admin.Stops{}).Endpoints()...)
	api.Mount((&admin.Threads{}).Endpoints()...)
	line, err := api.Describe()
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := json.Indent(&b, line, "", " "); err != nil {
		return nil, err
	}
	return append(b.Bytes(), '\n'), nil
}

// handlers returns the admin API, and the console where it is on.
func (o *operators) handlers(s configs.Server, logger *slog.Logger) ([]ownHandler, error) {
	loopback := !s.AdminBeyondLoopback()
	api := admin.New(admin.Options{Kernel: o.runtime.Executor.Kernel, Loopback: loopback, Log: logger})
	o.mount(api)
	if !s.Console || !Has(configs.Console) {
		return []ownHandler{api}, nil
	}
	pages, err := linked.console(api, loopback, logger)
	if err != nil {
		return nil, cli.InternalError{Err: err}
	}
	return []ownHandler{api, pages}, nil
}

// mount adds the endpoints.
func (o *operators) mount(api *admin.API) {
	sources := admin.Sources{
		Kernel: o.runtime.Executor.Kernel, Log: o.runtime.log, Recent: o.runtime.recent, Runs: o.runs,
		Health: o.health, Configuration: o.configuration, OpenBreakers: o.runtime.engine.OpenBreakers, Candidate: o.runtime.compared.Report,
		Differences: o.runtime.Servers.Differences,
		Version:     o.version, Replica: replicaName(), Started: time.Now(),
		StopsKept: o.runtime.stops.Kept, Changes: o.runtime.changes, StopsInForce: func() int { return len(o.runtime.stops.Active()) },
		ApprovalsWaiting: o.runtime.Executor.Desk().Waiting, ApprovalChanges: o.runtime.Executor.Desk().Changes,
	}
	api.Mount(sources.Endpoints()...)
	meter, _ := o.runtime.limiter.Limiter.(ratelimit.Meter)
	usage := admin.Usage{
		Kernel: o.runtime.Executor.Kernel, Meter: meter, Budgets: o.runtime.budgets.ledger, BudgetNames: o.budgetNames, Names: o.names,
		SharedLimits: o.runtime.limiter.shared != nil,
		Breakers:     o.breakers, Pools: o.pools, Unfinished: o.runtime.store.unfinished,
	}
	api.Mount(usage.Endpoints()...)
	decisions := admin.Approvals{Desk: o.runtime.Executor.Desk(), Kernel: o.runtime.Executor.Kernel, Log: o.runtime.log}
	api.Mount(decisions.Endpoints()...)
	stops := admin.Stops{Desk: o.runtime.stops.Desk, Kernel: o.runtime.Executor.Kernel, Running: o.runtime.store.running,
		BringsTools: func() bool { return o.loaded.Load().BringsTools }}
	api.Mount(stops.Endpoints()...)
	threads := admin.Threads{Kernel: o.runtime.Executor.Kernel, Ledger: o.runtime.threads}
	api.Mount(threads.Endpoints()...)
}

// names are the agents and principals that the configuration in force names.
func (o *operators) names() (agents, callers []string) {
	c := o.loaded.Load()
	for i := range c.Principals {
		callers = append(callers, c.Principals[i].Name)
	}
	return slices.Collect(maps.Keys(c.Agents)), callers
}

// budgetNames are the names that budgets may be counted for, of the configuration in force.
func (o *operators) budgetNames() (n budget.Names) {
	n.Agents, n.Principals = o.names()
	for workspace, in := range o.loaded.Load().Workspaces {
		for project := range in.Projects {
			n.Projects = append(n.Projects, workspace+"/"+project)
		}
	}
	return n
}

func (o *operators) breakers() []admin.Breaker {
	var list []admin.Breaker
	for _, b := range o.runtime.engine.FailingBreakers() {
		list = append(list, admin.Breaker(b))
	}
	return list
}

// toolNames are the names of the tools, each once.
func toolNames(c *configs.Config) []string {
	names := []string{}
	for _, entry := range c.Tools.Entries() { // sorted by name and version
		if n := len(names); n == 0 || names[n-1] != entry.Name() {
			names = append(names, entry.Name())
		}
	}
	return names
}

// configuration describes the configuration in force. Of secrets it has nothing.
func (o *operators) configuration() admin.Configuration {
	c, s := o.loaded.Load(), o.watch.State()
	d := admin.Configuration{
		Digest: c.Digest, Since: s.Since, Files: slices.Clone(c.Files), Warnings: []string{}, Faults: []string{},
		Restart: append([]string{}, s.RestartKeys...),
		Agents:  slices.Sorted(maps.Keys(c.Agents)), Projects: slices.Sorted(slices.Values(o.budgetNames().Projects)),
		ToolNames: toolNames(c), Tools: c.Tools.Len(),
		Settings: admin.Settings{
			Listen: c.Server.Listen, AdminListen: c.Server.AdminListen, AuthMode: c.Auth.Mode, AuditRecord: c.Record,
			AuditSigned: c.SignKey.IsSet(),
			Store:       c.Store.Kind, SharedLimits: c.Redis != nil, JSONInText: string(c.Output.JSONInText),
			NativeText: string(c.Output.NativeText), MaxBytes: c.Output.MaxBytes, MaxDepth: c.Output.MaxDepth,
		},
	}
	if _, known := c.Workspaces[c.Defaults.Workspace].Projects[c.Defaults.Project]; known {
		d.DefaultProject = c.Defaults.Workspace + "/" + c.Defaults.Project
	}
	if c.Agents[c.Defaults.Agent] {
		d.DefaultAgent = c.Defaults.Agent
	}
	if c.Embedded() {
		d.Files = []string{}
	}
	for _, w := range c.Warnings {
		d.Warnings = append(d.Warnings, w.Error())
	}
	for _, f := range s.Faults {
		d.Faults = append(d.Faults, f.Error())
	}
	return d
}
