package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/callgate/callgate/configs/toolimport"
	"github.com/callgate/callgate/internal/cli"
)

func newToolsImport(e env) *cobra.Command {
	return group("import", "Turn foreign tool definitions into a tool file", newImportMCP(e), newImportOpenAI(e), newImportAnthropic(e), newImportResponses(e), newImportOpenAPI(e), newImportACP(e))
}

func newImportMCP(e env) *cobra.Command {
	var prefix string
	var o importFlags
	c := &cobra.Command{
		Use:   "mcp FILE|URL|-",
		Short: "Import tools of the Model Context Protocol",
		Long: `Read tool definitions as an MCP server lists them (a JSON array, an object with
"tools", or the whole response) and print a tool file for registry.files.

Every tool is imported with effect once and run.type client, whatever its
annotations hint: change both where you know better. Schemas in the words of other
dialects are rewritten (an object that declares no members gets
additionalProperties: true, a format that is not judged is left out), which is said
here. Characters of a description that cannot be seen are written out, as \u202e,
and said; a tool that has one anywhere else is left out. A tool that cannot be
judged strictly is left out, with the reason; then the exit code is 1.`,
		Example: "  callgate tools import mcp tools.json > tools/imported.yaml",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return imports(c.Context(), e, args, o, func(name string, data []byte) (*toolimport.Result, error) {
				return toolimport.MCP(name, data, prefix, o.only...)
			})
		},
	}
	c.Flags().StringVar(&prefix, "prefix", "", "a `PREFIX` for every name, such as github.")
	o.add(c)
	return c
}

// newImportOfRequest completes the command that imports the tools of a request to a model.
func newImportOfRequest(e env, c *cobra.Command, read func(name string, data []byte, only ...string) (*toolimport.Result, error)) *cobra.Command {
	var o importFlags
	c.Args = cobra.ExactArgs(1)
	c.RunE = func(c *cobra.Command, args []string) error {
		return imports(c.Context(), e, args, o, func(name string, data []byte) (*toolimport.Result, error) {
			return read(name, data, o.only...)
		})
	}
	o.add(c)
	return c
}

func newImportAnthropic(e env) *cobra.Command {
	return newImportOfRequest(e, &cobra.Command{
		Use:   "anthropic FILE|URL|-",
		Short: "Import the tools of a request of Anthropic Messages",
		Long: `Read the "tools" of a request to Anthropic's /v1/messages (the JSON array, or the
whole request) and print a tool file for registry.files.

Every tool is imported under its own name with effect once and run.type client:
the application that sends the request runs it. Tools with a dated type that the
application runs (bash_*, text_editor_*, memory_*, computer_* and the toolsets)
get the schema that the API documents; a member of a toolset is named
computer.left_click. Schemas in the words of other dialects are rewritten, which is
said here. A tool that the provider runs, or that cannot be judged strictly, is left
out, with the reason; then the exit code is 1.`,
		Example: "  callgate tools import anthropic request.json > tools/imported.yaml",
	}, toolimport.Anthropic)
}

func newImportResponses(e env) *cobra.Command {
	return newImportOfRequest(e, &cobra.Command{
		Use:   "responses FILE|URL|-",
		Short: "Import the tools of a request of OpenAI Responses",
		Long: `Read the "tools" of a request to OpenAI's /v1/responses (the JSON array, or the whole
request, with the items additional_tools of its input) and print a tool file for
registry.files.

Every tool is imported under its own name with effect once and run.type client:
the application that sends the request runs it. The tools of a namespace are
named NAMESPACE.NAME. A custom tool has one argument, input, a text: its grammar
is not checked. shell, local_shell, apply_patch and computer get the schema of
their calls. Schemas in the words of other dialects are rewritten, which is said
here. A tool that the provider runs, or that cannot be judged strictly, is left
out, with the reason; then the exit code is 1.`,
		Example: "  callgate tools import responses request.json > tools/imported.yaml",
	}, toolimport.Responses)
}

func newImportOpenAI(e env) *cobra.Command {
	return newImportOfRequest(e, &cobra.Command{
		Use:   "openai FILE|URL|-",
		Short: "Import the tools of a chat completions request",
		Long: `Read the "tools" of an OpenAI chat completions request (the JSON array, or the
whole request) and print a tool file for registry.files.

Every tool is imported under its own name with effect once and run.type client:
the application that sends the request runs it. Parameters that are absent are no
arguments, and strict is not needed: every tool is judged strictly. An object that
declares no members gets additionalProperties: true, and schemas in the words of
other dialects are rewritten, which is said here. A tool that cannot be judged strictly, such as a custom tool, is
left out, with the reason; then the exit code is 1.`,
		Example: "  callgate tools import openai request.json > tools/imported.yaml",
	}, toolimport.OpenAI)
}

func newImportOpenAPI(e env) *cobra.Command {
	var o toolimport.OpenAPIOptions
	var flags importFlags
	var server string
	c := &cobra.Command{
		Use:   "openapi FILE|URL|-",
		Short: "Import the operations of an OpenAPI document",
		Long: `Read an OpenAPI 3 document (JSON or YAML) and print a tool file for
registry.files: one tool of run.type http for each operation, whose arguments are
the parameters of the operation and, as one argument, its JSON body.

A tool is named by the operation's operationId, or by its method and path. GET and
HEAD get the effect read, PUT and DELETE idempotent, every other method once:
change it where you know better. Where the document states no server, several, or
one without a host, choose it with --url.

A document may be fetched from a URL, over https or from this machine, or found at a
running server by --server, which tries the usual places. Servers that the document
states are relative to where it was found. Its digest is printed.

--operation, --tag, --path and --only choose operations: one is imported where each
option that is given fits it. In a pattern of paths * stands for a segment, or a part
of it, and /** at the end for all below. A value that fits nothing is an error.

An operation without a strict form is left out, with the reason: forms and other bodies that
are not JSON, cookies, parameters that are objects, references to other files.
Then the exit code is 1. A credential is never an argument. --credential names the
place of the one that the operations ask for, and their tools get it as
run.credential, in the header that the document says; without it a note says what
to write.`,
		Example: "  callgate tools import openapi --prefix pets. petstore.yaml > tools/pets.yaml",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			o.Only = flags.only
			var name string
			var data []byte
			var err error
			switch {
			case server != "" && len(args) == 0:
				o.Location, data, err = fetchFromServer(c.Context(), e, server)
			case len(args) == 1 && server == "" && isWebURL(args[0]):
				o.Location, data, err = fetch(c.Context(), e, args[0])
			case len(args) == 1 && server == "":
				name, data, err = e.Definitions(c.Context(), args)
			default:
				return errors.New("expected a file, a URL, or --server URL")
			}
			if err != nil {
				return err
			}
			if o.Location != nil {
				name = shownURL(o.Location)
			}
			imported, err := toolimport.OpenAPI(name, data, o)
			if err != nil {
				return err
			}
			return printImported(e, imported, flags.notes.all)
		},
	}
	c.Flags().StringVar(&o.Prefix, "prefix", "", "a `PREFIX` for every name, such as pets.")
	c.Flags().StringVar(&o.URL, "url", "", "the `URL` of the server, instead of the document's")
	c.Flags().StringSliceVar(&o.Addresses, "addresses", nil, "`ADDRESSES` or prefixes that the tools may connect to; public ones by default")
	c.Flags().StringArrayVar(&o.Credentials, "credential", nil, "the `PLACE` of the credential that operations ask for: env:NAME or file:PATH, or SCHEME=env:NAME for one security scheme (repeatable)")
	c.Flags().StringArrayVar(&o.Operations, "operation", nil, "import the operation with this `ID` (repeatable)")
	c.Flags().StringArrayVar(&o.Tags, "tag", nil, "import the operations with this `TAG` (repeatable)")
	c.Flags().StringArrayVar(&o.Paths, "path", nil, "import the operations of paths that match this `PATTERN`, such as /pets/** (repeatable)")
	c.Flags().StringVar(&server, "server", "", "find the document at the `URL` of a running server")
	flags.add(c)
	completeChoices(e, c)
	return c
}

func newImportACP(e env) *cobra.Command {
	return &cobra.Command{
		Use:   "acp",
		Short: "Print the tools of the Agent Client Protocol",
		Long: `Print a tool file for registry.files with the tools that an editor offers to agents:
acp.fs.read, acp.fs.write and acp.terminal.create, which the editor runs (run.type
acp), and acp.permission.KIND, as which the permissions are judged that an agent
behind "callgate acp -- COMMAND" asks for.

The protocol fixes them, so no file is read. Change descriptions, schemas and
effects in the printed file as you need them.`,
		Example: "  callgate tools import acp > tools/acp.yaml",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := e.Stdout.Write(toolimport.ACP())
			return err
		},
	}
}

// imports reads a file of definitions and prints what became of it.
func imports(ctx context.Context, e env, args []string, o importFlags, read func(name string, data []byte) (*toolimport.Result, error)) error {
	name := args[0]
	var data []byte
	var err error
	if isWebURL(name) {
		var location *url.URL
		if location, data, err = fetch(ctx, e, name); err == nil {
			name = shownURL(location)
		}
	} else {
		name, data, err = e.Definitions(ctx, args)
	}
	if err != nil {
		return err
	}
	imported, err := read(name, data)
	if err != nil {
		return err
	}
	return printImported(e, imported, o.notes.all)
}

// printImported prints the tool file, and says what was changed and left out.
func printImported(e env, im *toolimport.Result, all bool) error {
	printNotes(e, "changed", im.Changed, all)
	printNotes(e, "left out", im.Refused, all)
	fmt.Fprintf(e.Stderr, "%d tools imported, %d changes, %d reasons for leaving tools out\n", len(im.Names), len(im.Changed), len(im.Refused))
	if _, err := e.Stdout.Write(im.YAML); err != nil {
		return err
	}
	if len(im.Refused) > 0 {
		return cli.ErrRefused
	}
	return nil
}
