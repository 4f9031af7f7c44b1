"""From recipe to bytes: runs the recipes of a content and checks what comes out."""
