package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/configs/starter"
	"github.com/callgate/callgate/internal/cli"
	"github.com/callgate/callgate/internal/text"
	"github.com/callgate/callgate/policy"
)

// initNext says what is permitted, and which commands come next.
func initNext(e env, p *starter.Plan, folder string, f initFlags, loaded *configs.Config) error {
	w := e.Stdout
	if n := p.Secrets(); n > 0 {
		fmt.Fprintf(w, "%d values of the client's file are in files of their own below %s; take them out of that file once it starts only Callgate\n", n, filepath.Join(folder, "secrets"))
	}
	var permitted []string
	for _, t := range loaded.Tools.Entries() {
		reach, err := loaded.Policy.Reach(f.options.Agent, starter.Workspace, starter.Project, t.Name())
		if err != nil {
			return cli.InternalError{Err: err}
		}
		if reach != policy.Never {
			permitted = append(permitted, t.Name())
		}
	}
	are := "are"
	if len(loaded.Tools.Entries()) == 1 {
		are = "is"
	}
	fmt.Fprintf(w, "%d of %s %s permitted to %s; policy.csv says which, and denies all others\n", len(permitted),
		text.Count(len(loaded.Tools.Entries()), "tool"), are, f.options.Agent)
	fmt.Fprintln(w, "Next:")
	if folder != "." {
		fmt.Fprintf(w, "  cd %s\n", folder)
	}
	fmt.Fprintf(w, "  callgate policy explain --agent %s\n", f.options.Agent)
	if f.from == "" && slices.Equal(permitted, []string{"notes.add"}) {
		fmt.Fprintln(w, `  echo '{"tool":{"name":"notes.add","arguments":{"text":"tea"}}}' | callgate call`)
	}
	fmt.Fprintln(w, "  callgate serve")
	if len(f.options.Tools.Servers) == 0 {
		return nil
	}
	return printClientEntry(e, filepath.Join(folder, starter.MainFile))
}

// printClientEntry prints the entry of a client's file that starts Callgate.
func printClientEntry(e env, main string) error {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("the path of this program is not known: %w", err)
	}
	if main, err = filepath.Abs(main); err != nil {
		return err
	}
	type server struct {
		Command string   `json:"command"`
		Args    []string `json:"args"`
	}
	entry, err := cli.JSONLine(map[string]map[string]server{"mcpServers": {"callgate": {program, []string{"mcp", "--config", main}}}})
	if err != nil {
		return err
	}
	fmt.Fprintf(e.Stdout, "For an MCP client (Visual Studio Code says servers for mcpServers), in place of its servers:\n%s", entry)
	return nil
}
