"""The script that draws the charts: plotly.js, as the plotly package brings it along; the only
place that knows that package. The page holds all of it, and so needs no network."""

from __future__ import annotations

from cas.errors import UsageError


def script() -> str:
    """The text of plotly.js, fit to stand in a page. Raises UsageError without plotly."""
    try:
        from plotly.offline import get_plotlyjs
    except ImportError:
        raise UsageError(
            "plotly is not installed", where="-o", advice="pip install 'cas-sync[report]'"
        ) from None
    text: str = get_plotlyjs()
    # In a string of the script these mean the same; in a page they would end it.
    return text.replace("</script", "<\\/script").replace("<!--", "<\\!--")
