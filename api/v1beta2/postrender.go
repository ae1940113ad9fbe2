package v1beta2

// PostRender is what is done to the objects of a module after they were rendered, once and before they are serialised: images
// are taken from mirrors, pull secrets are added, labels and annotations are added.
type PostRender struct {
	// imageMirrors say where images are taken from instead. Of several that match an image, the longest counts. Tag and digest
	// stay as they are.
	//
	// +optional
	// +listType=map
	// +listMapKey=from
	// +kubebuilder:validation:MaxItems=64
	ImageMirrors []ImageMirror `json:"imageMirrors,omitempty"`
	// imageFields are fields that hold images besides those of Pods and of everything that has a template of Pods, such as
	// fields of custom resources.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	ImageFields []ImageField `json:"imageFields,omitempty"`
	// imagePullSecrets are names of Secrets that are added to those of Pods, of everything that has a template of Pods, and of
	// ServiceAccounts. The Secrets themselves must be in the runtime's namespaces.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	ImagePullSecrets []string `json:"imagePullSecrets,omitempty"`
	// labels are added to every object but Namespaces, which modules may share. A label that an object has already stays, and
	// selectors are never touched.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	Labels map[string]string `json:"labels,omitempty"`
	// annotations are added as labels are.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	Annotations map[string]string `json:"annotations,omitempty"`
	// pods says whether labels and annotations are added to templates of Pods, too. A change of them then restarts the Pods.
	//
	// +optional
	Pods bool `json:"pods,omitempty"`
}

// ImageMirror is one place of images and what stands in for it.
type ImageMirror struct {
	// from is a registry, or the beginning of a repository's name in whole parts: quay.io, docker.io/library, ghcr.io/org/app.
	// An image without a registry is docker.io's.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	From string `json:"from,omitempty"`
	// to is what it is replaced by, such as registry.example.com:5000/quay.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	To string `json:"to,omitempty"`
}

// ImageField says where objects of a kind hold images.
type ImageField struct {
	// group of the objects. Default: the core group.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Group string `json:"group,omitempty"`
	// kind of the objects.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind,omitempty"`
	// path is a JSON pointer (RFC 6901) to the field; "*" stands for any key or list item.
	//
	// +required
	// +kubebuilder:validation:XValidation:rule="self.startsWith('/')",message="a JSON pointer begins with /"
	// +kubebuilder:validation:MaxLength=1024
	Path string `json:"path,omitempty"`
	// prefix is what stands before the image in the field, such as "--solver-image=" in an argument. Fields without it are
	// left alone.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=255
	Prefix string `json:"prefix,omitempty"`
}
