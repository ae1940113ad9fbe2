package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kyma-project/mothership/internal/catalog/artifact"
	"github.com/kyma-project/mothership/internal/source"
)

const aboutPush = `
Makes one OCI artifact of a folder and pushes it: the templates and releases at its top, and everything below it, which templates may
name by relative paths. The same folder is the same artifact. What cannot be read, and paths that lead out of the folder, are refused.

Credentials come from docker's configuration, as docker login writes it.
`

const examplePush = `
  mothership catalog push ./catalog oci://registry.example.com/team/catalog:1.0`

func (a *app) catalogPush() *cobra.Command {
	s := &serverFlags{}
	cmd := a.verb("push DIR oci://HOST/REPOSITORY:TAG [flags]", "Push a catalogue to a registry", aboutPush, examplePush, []string{"DIR", "ADDRESS"},
		func(cmd *cobra.Command, args []string) error { return a.runCatalogPush(cmd, s, args[0], args[1]) })
	cmd.ValidArgsFunction = nil // files
	s.addTo(cmd.Flags())
	return cmd
}

func (a *app) runCatalogPush(cmd *cobra.Command, s *serverFlags, dir, address string) error {
	ref, err := artifact.ParseReference(address)
	if err != nil {
		return usage(cmd, "%v", err)
	}
	files, err := artifact.Read(dir)
	if err != nil {
		return err
	}
	entries, _ := files.Decode()
	if err := errors.Join(files.CheckPortable()...); err != nil {
		return err
	}
	if len(entries) == 0 {
		return fmt.Errorf("%s has no ModuleTemplate and no ModuleReleaseMeta in the *.yaml, *.yml and *.json at its top", dir)
	}
	registry, err := a.registry(s, s.caFile)
	if err != nil {
		return err
	}
	digest, err := registry.Push(cmd.Context(), ref, files)
	if err != nil {
		return err
	}
	return a.say("%s@%s", ref.Repository(), digest)
}

const aboutPull = `
Writes the folder that was pushed, byte for byte, into DIR, which must not exist or be empty. Everything is compared with its digest
first.
`

const examplePull = `
  mothership catalog pull oci://registry.example.com/team/catalog:1.0 ./catalog`

func (a *app) catalogPull() *cobra.Command {
	s := &serverFlags{}
	cmd := a.verb("pull oci://HOST/REPOSITORY(:TAG|@DIGEST) DIR [flags]", "Pull a catalogue from a registry", aboutPull, examplePull, []string{"ADDRESS", "DIR"},
		func(cmd *cobra.Command, args []string) error { return a.runCatalogPull(cmd, s, args[0], args[1]) })
	s.addTo(cmd.Flags())
	return cmd
}

func (a *app) runCatalogPull(cmd *cobra.Command, s *serverFlags, address, dir string) error {
	ref, err := artifact.ParseReference(address)
	if err != nil {
		return usage(cmd, "%v", err)
	}
	files, digest, err := a.pull(cmd.Context(), s, address)
	if err != nil {
		return err
	}
	if err := files.Write(dir); err != nil {
		return err
	}
	return a.say("%s@%s", ref.Repository(), digest)
}

const aboutMirror = `
Copies a catalogue and everything that its templates refer to: charts of Helm repositories and registries, archives, OCI artifacts,
folders of Git repositories and of this disk. The copy's templates lead to the copies, pinned by their digests, and to nothing else, so
that the modules install where nothing else can be reached.

A registry gets the catalogue at the address given, and each source below it: HOST/REPOSITORY/MODULE:VERSION. A folder gets the
templates and releases as files, with the sources in sources/ beside them. Nothing is sent or written that is there already. Signatures
that templates ask for are checked while copying.

Container images are not copied. Those that the modules name with their own values are listed.
`

const exampleMirror = `
  mothership catalog mirror oci://registry.example.com/team/catalog:1.0 oci://registry.local:5000/kyma/catalog:1.0
  mothership catalog mirror ./catalog ./for-the-other-side`

// mirroring is one call of catalog mirror.
type mirroring struct {
	servers         serverFlags
	toCAFile        string
	toCredentials   string
	withoutImages   bool
	output          string
	source, address string
}

func (a *app) catalogMirror() *cobra.Command {
	f := &mirroring{}
	cmd := a.verb("mirror (DIR|FILE|oci://…) (oci://HOST/REPOSITORY:TAG|DIR) [flags]", "Copy a catalogue with everything that it refers to",
		aboutMirror, exampleMirror, []string{"FROM", "TO"}, func(cmd *cobra.Command, args []string) error {
			f.source, f.address = args[0], args[1]
			return a.runCatalogMirror(cmd, f)
		})
	cmd.ValidArgsFunction = nil // files
	flags := cmd.Flags()
	f.servers.addTo(flags)
	f.servers.addSecretsTo(flags)
	flags.StringVar(&f.toCAFile, "to-ca-file", "", "a PEM `FILE` with the authorities of the mirror's registry; written into the templates")
	flags.StringVar(&f.toCredentials, "to-credentials-ref", "", "the `SECRET` of a control plane by which it reads the mirror's registry; written into the templates")
	flags.BoolVar(&f.withoutImages, "no-images", false, "do not render the modules to list their container images")
	addOutput(cmd, &f.output)
	return cmd
}

func (a *app) runCatalogMirror(cmd *cobra.Command, f *mirroring) error {
	if err := checkOutput(cmd, f.output); err != nil {
		return err
	}
	to, err := a.mirrorTarget(cmd, f)
	if err != nil {
		return err
	}
	p, err := a.open(cmd.Context(), &f.servers, f.source)
	if err != nil {
		return err
	}
	defer p.close()
	outfit, err := a.outfit(cmd, &f.servers, p.dir)
	if err != nil {
		return err
	}
	o := artifact.MirrorOptions{Dir: p.dir, To: *to, Sources: outfit.fetcher()}
	if !f.withoutImages {
		r, err := a.renderer(cmd, outfit)
		if err != nil {
			return err
		}
		o.Images = r.images
	}
	report, err := artifact.Mirror(cmd.Context(), p.files, o)
	if report == nil {
		return err
	}
	for _, w := range report.Warnings {
		a.note("warning", w)
	}
	return errors.Join(err, a.print(&flags{output: f.output}, report, func() string { return a.mirrored(report, err) }))
}

// mirrorTarget is where the mirror goes.
func (a *app) mirrorTarget(cmd *cobra.Command, f *mirroring) (*artifact.Target, error) {
	if !strings.HasPrefix(f.address, artifact.Scheme) {
		if f.toCAFile != "" || f.toCredentials != "" {
			return nil, usage(cmd, "--to-ca-file and --to-credentials-ref are for registries, %s is a folder", f.address)
		}
		return &artifact.Target{Dir: f.address}, nil
	}
	ref, err := artifact.ParseReference(f.address)
	if err != nil {
		return nil, usage(cmd, "%v", err)
	}
	registry, err := a.registry(&f.servers, cmp.Or(f.toCAFile, f.servers.caFile))
	if err != nil {
		return nil, err
	}
	to := &artifact.Target{Registry: registry, Reference: ref, CredentialsRef: f.toCredentials}
	if f.toCAFile != "" {
		data, err := readFile(f.toCAFile)
		if err != nil {
			return nil, fmt.Errorf("reading authorities: %w", err)
		}
		to.CABundle = string(data)
	}
	return to, nil
}

// mirrored is the report for people.
func (a *app) mirrored(r *artifact.Report, err error) string {
	var b strings.Builder
	for _, c := range r.Copied {
		did := "copied"
		if c.Unchanged {
			did = "unchanged"
		}
		from := strings.TrimSpace(c.From + " " + c.Revision)
		fmt.Fprintf(&b, "%-9s  %s  %s → %s@%s\n", did, oneLine(c.Template), oneLine(from), oneLine(c.To), c.Digest)
	}
	for _, image := range r.Images {
		fmt.Fprintf(&b, "%-9s  %s\n", "image", oneLine(image))
	}
	if n := len(r.Images); n > 0 {
		fmt.Fprintf(&b, "%s not copied: have the clusters' registry mirror them\n", count(n, "image"))
	}
	if err == nil {
		fmt.Fprintf(&b, "mirrored %s to %s\n", count(len(r.Copied), "module version"), oneLine(r.Catalog))
	}
	return b.String()
}

// fetcher fetches sources with what the flags say of servers.
func (o *outfit) fetcher() source.Fetcher {
	sources := o.sources()
	inner := source.New(source.Options{Credentials: func(ctx context.Context, name string) (*source.Credentials, error) {
		data, err := sources.Credentials(ctx, name)
		if err != nil {
			return nil, err
		}
		return source.CredentialsOf(data)
	}})
	return source.FetcherFunc(func(ctx context.Context, ref source.Ref) (*source.Tree, error) {
		s, err := o.dressed(ctx, sourceOfRef(ref))
		if err != nil {
			return nil, err
		}
		dressed, err := source.RefOf(s)
		if err != nil {
			return nil, err
		}
		return inner.Fetch(ctx, dressed)
	})
}
