package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/configs/starter"
	"github.com/callgate/callgate/configs/toolimport"
	"github.com/callgate/callgate/internal/cli"
)

// initFlags are the flags of init.
type initFlags struct {
	from, name, prefix, server string
	credentials                []string
	options                    starter.Options
	force, run, yes            bool
}

// The kinds of --from besides a client's file.
const (
	sourceMCP     = "mcp"
	sourceOpenAPI = "openapi"
	sourceRequest = "request"
)

func newInit(e env) *cobra.Command {
	var f initFlags
	c := &cobra.Command{
		Use:   "init [FOLDER] [--from KIND|FILE] [SOURCE] [-- COMMAND [ARG…]]",
		Short: "Write a small configuration of your own",
		Long: `Write a configuration into FOLDER (default: this one): callgate.yaml, policy.csv,
workspaces.yaml, limits.yaml and the tools. The policy permits the tools of --allow to one
agent, and nothing else. It loads, so serve, call and mcp work at once.

  --from openapi FILE         the operations of an OpenAPI document; Callgate calls them
  --from request FILE         the tools of a chat completions, Responses or Messages
                              request; your application runs them
  --from mcp URL              an MCP server
  --from mcp -- COMMAND ARG…  the same, started by Callgate in FOLDER
  --from CLIENT.json          the servers of an MCP client (claude_desktop_config.json,
                              .mcp.json, .vscode/mcp.json), which is not changed

Without --from there are two example tools, one of them permitted. What was changed or left
out is named on standard error.

Programs of a client's file, which may be somebody else's, are shown and start only after a
yes; tools of servers are shown and accepted likewise. Values of env and headers
are copied to files below secrets/ that only you can read; ${NAME} becomes env:NAME.

Exit code 1: a tool or server was left out, or tools were not accepted; all else is written.`,
		Example: `  callgate init gateway --from openapi petstore.yaml --allow listPets,getPetById
  callgate init --from mcp --name files --allow files.read_text_file -- \
      npx -y @modelcontextprotocol/server-filesystem /home/me/notes`,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if err := notEmpty(c, "from", "agent", "upstream", "upstream-key", "name", "url"); err != nil {
				return err
			}
			return runInit(c.Context(), e, f, args, c.ArgsLenAtDash())
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveDefault
		},
	}
	c.Flags().StringVar(&f.from, "from", "", "where the tools come from: mcp, openapi, request, or the `FILE` of an MCP client")
	c.Flags().StringSliceVar(&f.options.Allow, "allow", nil, "permit these `TOOLS`: names, files.*, or *")
	c.Flags().StringVar(&f.options.Agent, "agent", "assistant", "the `AGENT` that calls are made for")
	c.Flags().StringVar(&f.options.Upstream, "upstream", "",
		"the base `URL` of a model's API, for applications that ask it through Callgate")
	c.Flags().StringVar(&f.options.UpstreamKey, "upstream-key", "", "the `PLACE` of its key: env:NAME or file:PATH")
	c.Flags().StringVar(&f.name, "name", "mcp", "with --from mcp: the `NAME` of the server, in front of its tools' names")
	c.Flags().StringVar(&f.prefix, "prefix", "", "with --from openapi: a `PREFIX` for every name, such as pets.")
	c.Flags().StringVar(&f.server, "url", "", "with --from openapi: the `URL` of the server (default: the document's)")
	c.Flags().StringArrayVar(&f.credentials, "credential", nil,
		"with --from openapi: the `PLACE` of the credential: env:NAME or file:PATH, or SCHEME=PLACE (repeatable)")
	c.Flags().BoolVar(&f.force, "force", false, "overwrite files")
	c.Flags().BoolVar(&f.run, "run", false, "start the programs of a client's file without asking")
	c.Flags().BoolVar(&f.yes, "yes", false, "start programs and accept tools without asking")
	_ = c.RegisterFlagCompletionFunc("from", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return []string{sourceMCP + "\ta server", sourceOpenAPI + "\ta document", sourceRequest + "\ta request to a model"},
			cobra.ShellCompDirectiveDefault
	})
	return c
}

func runInit(ctx context.Context, e env, f initFlags, args []string, dash int) error {
	folder, source, command, err := initArguments(f.from, args, dash)
	if err != nil {
		return err
	}
	if kind := recognize(ctx, e, f.from); kind != "" {
		f.from, source = kind, f.from
	}
	for _, flag := range []struct{ name, value, unset, kind string }{
		{"name", f.name, "mcp", sourceMCP}, {"prefix", f.prefix, "", sourceOpenAPI}, {"url", f.server, "", sourceOpenAPI},
		{"credential", strings.Join(f.credentials, ""), "", sourceOpenAPI},
	} {
		if flag.value != flag.unset && f.from != flag.kind {
			return fmt.Errorf("--%s is for --from %s", flag.name, flag.kind)
		}
	}
	if f.options.UpstreamKey != "" && f.options.Upstream == "" {
		return errors.New("--upstream-key is the key of --upstream, which is absent")
	}
	f.options.Tools, err = initTools(ctx, e, f, source, command)
	for _, note := range f.options.Tools.Notes {
		fmt.Fprintln(e.Stderr, note)
	}
	if err != nil {
		return err
	}
	plan, err := starter.New(folder, f.options)
	if err != nil {
		return err
	}
	if err := plan.Write(f.force); err != nil {
		return err
	}
	for _, path := range plan.Paths() {
		fmt.Fprintf(e.Stdout, "wrote %s\n", path)
	}
	complete := f.options.Tools.LeftOut == 0
	if len(f.options.Tools.Servers) > 0 {
		accepted, err := acceptFirst(ctx, e, filepath.Join(folder, starter.MainFile), f)
		if err != nil {
			return err
		}
		complete = complete && accepted
	}
	loaded, err := e.Warned(configs.Load(filepath.Join(folder, starter.MainFile)))
	if err != nil {
		return err
	}
	if err := initNext(e, plan, folder, f, loaded); err != nil {
		return err
	}
	if !complete {
		return cli.ErrRefused
	}
	return nil
}

// initArguments tells the folder, the source and the command of the arguments apart.
func initArguments(from string, args []string, dash int) (folder, source string, command []string, err error) {
	before := args
	if dash >= 0 {
		before, command = args[:dash], args[dash:]
	}
	switch needsSource := from == sourceOpenAPI || from == sourceRequest || from == sourceMCP && dash < 0; {
	case from == sourceMCP && dash >= 0 && len(command) == 0:
		err = errors.New("found no command behind --; expected the one that starts the server")
	case from != sourceMCP && dash >= 0:
		err = errors.New("found a command behind --; expected it only with --from mcp")
	case needsSource && len(before) == 0:
		err = fmt.Errorf("--from %s says the kind of a source; expected the source too: %q tells more", from, "callgate init --help")
	case needsSource:
		source, before = before[len(before)-1], before[:len(before)-1]
	}
	if err == nil && len(before) > 1 {
		err = fmt.Errorf("found %d folders; expected one at most: %q tells more", len(before), "callgate init --help")
	}
	folder = "."
	if len(before) > 0 {
		folder = before[0]
	}
	return folder, source, command, err
}

// initTools reads the tools of a source.
func initTools(ctx context.Context, e env, f initFlags, source string, command []string) (starter.Tools, error) {
	switch f.from {
	case "":
		return starter.Example(), nil
	case sourceMCP:
		s := starter.Server{Name: f.name, URL: source, Command: command}
		if len(command) > 0 && strings.ContainsRune(command[0], filepath.Separator) {
			var err error
			if s.Command[0], err = filepath.Abs(command[0]); err != nil {
				return starter.Tools{}, err
			}
		}
		return starter.FromServer(s)
	}
	file := source
	if f.from != sourceOpenAPI && f.from != sourceRequest {
		if file = f.from; !strings.ContainsAny(file, "./") {
			return starter.Tools{}, fmt.Errorf("--from is %q; expected mcp, openapi, request, or a file of an MCP client", file)
		}
	}
	name, data, err := e.Definitions(ctx, []string{file})
	if err != nil {
		return starter.Tools{}, fmt.Errorf("%w; expected the file of %s", err,
			cmp.Or(map[string]string{sourceOpenAPI: "an OpenAPI document", sourceRequest: "a request to a model"}[f.from], "an MCP client"))
	}
	switch f.from {
	case sourceOpenAPI:
		return starter.FromOpenAPI(name, data, toolimport.OpenAPIOptions{Prefix: f.prefix, URL: f.server, Credentials: f.credentials})
	case sourceRequest:
		return starter.FromRequest(name, data)
	}
	return starter.FromClientFile(name, data)
}

// recognize says of what kind a file is that --from names itself: an OpenAPI document, or, as "", anything else.
// A file that cannot be read is reported later.
func recognize(ctx context.Context, e env, from string) string {
	if !strings.ContainsAny(from, "./") || from == "-" {
		return ""
	}
	name, data, err := e.Definitions(ctx, []string{from})
	if err != nil || !toolimport.IsOpenAPI(name, data) {
		return ""
	}
	fmt.Fprintf(e.Stderr, "%s is an OpenAPI document: it is read as with --from openapi %s\n", name, from)
	return sourceOpenAPI
}
