# docker build -t incrowd . && docker run --rm -v "$PWD:/work" incrowd verify release
FROM python:3.13-slim AS build
WORKDIR /source
COPY pyproject.toml README.md LICENSE constraints.txt ./
COPY src src
RUN python -m venv /opt/incrowd && /opt/incrowd/bin/pip install --no-cache-dir . -c constraints.txt

FROM python:3.13-slim
COPY --from=build /opt/incrowd /opt/incrowd
RUN useradd --create-home --uid 1000 publisher
USER 1000
WORKDIR /work
ENV PATH=/opt/incrowd/bin:$PATH PYTHONDONTWRITEBYTECODE=1
ENTRYPOINT ["incrowd"]
CMD ["--help"]
