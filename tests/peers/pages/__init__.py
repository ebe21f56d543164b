"""Pages as GitHub shows them: Markdown with its extensions, and Mermaid's diagrams."""
